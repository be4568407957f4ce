"""HTTP responses for the answers of several commands topics to a bulk command.

No response invites to repeat a request that was carried out anywhere, or will be: a repetition reaches all topics.
"""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web
from msgspec import UNSET

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import Answer, BulkAnswers, NotInAllTopics, is_over_quota, of_all_topics
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Result
from light_scheduler.web.forms.problems import RETRY_AFTER_S, Extension, ProblemError, ProblemType, TopicAnswer
from light_scheduler.wire.json_commands import json_name

from .responses import refusal, result_response, sent_response

_NOWHERE = "No topic carried the command out"
_NOT_AGAIN = "Do not send the request again: it would be carried out once more where it was"


def bulk_response(answers: BulkAnswers) -> web.Response:
    """Answer with the result, or the receipt, of all topics. Raises ProblemError, or the error of the only topic."""
    refused = answers.refused
    if len(answers.by_topic) > 1 and refused and not answers.failed:
        raise _partly(answers) if answers.carried_out or answers.sent else _refused(answers)
    try:
        answer = answers.as_one()
    except NotInAllTopics:
        raise _unanswered(answers) from None
    return result_response(answer) if isinstance(answer, Result) else sent_response(answer)


def _refused(answers: BulkAnswers) -> ProblemError:
    """Return the problem of a command that no topic has carried out."""
    detail = f"{_NOWHERE}. {answers.in_words(json_name)}"
    return refusal(of_all_topics(answers.refused), detail, _by_topic(answers))


def _partly(answers: BulkAnswers) -> ProblemError:
    return ProblemError(
        HTTPStatus.CONFLICT,
        f"{answers.in_words(json_name)} {_NOT_AGAIN}.",
        extension=Extension(topics=_by_topic(answers)),
        type=ProblemType.PARTLY_CARRIED_OUT,
    )


def _unanswered(answers: BulkAnswers) -> ProblemError:
    """Return the problem of a command that some topics have not answered."""
    topics, failed, unanswered = _by_topic(answers), answers.failed, list(answers.unanswered.values())
    if failed and (answers.carried_out or answers.sent):
        return _partly(answers)
    if failed:
        invalid = [error for error in failed.values() if isinstance(error, InvalidCommand)]
        beginning = _NOWHERE if len(invalid) == len(failed) else "The command may or may not have been sent"
        detail, extension = f"{beginning}. {answers.in_words(json_name)}", Extension(topics=topics)
        if invalid:
            parameter, type = invalid[0].field, ProblemType.INVALID_COMMAND
            return ProblemError(HTTPStatus.BAD_REQUEST, detail, parameter=parameter, extension=extension, type=type)
        may_help = all(map(is_over_quota, answers.refused.values()))
        return ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            detail,
            extension=extension,
            retry_after_s=RETRY_AFTER_S if may_help else None,
        )
    return ProblemError(
        HTTPStatus.GATEWAY_TIMEOUT,
        f"{answers.in_words(json_name)} {_NOT_AGAIN}.",
        extension=Extension(sent=unanswered[0].receipt, topics=topics),
    )


def _by_topic(answers: BulkAnswers) -> list[TopicAnswer]:
    return [_of_topic(topic, answer) for topic, answer in answers.by_topic.items()]


def _of_topic(topic: str, answer: Answer) -> TopicAnswer:
    if isinstance(answer, Result):
        return TopicAnswer(topic=topic, result=answer)
    if isinstance(answer, Receipt):
        return TopicAnswer(topic=topic, sent=answer)
    sent = answer.receipt if isinstance(answer, ResultTimeout) else UNSET
    return TopicAnswer(topic=topic, sent=sent, reason=str(answer))
