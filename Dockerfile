# A worker, or any other `light-scheduler` command, as a user without rights.
#
#   docker build -t light-scheduler .
#   docker run --rm light-scheduler --help
#
# Another base, such as a newer one or one from a mirror: --build-arg PYTHON_IMAGE=...@sha256:...
# The digest decides, the tag is for people: it is that of the index of all architectures.
ARG PYTHON_IMAGE=python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1


FROM ${PYTHON_IMAGE} AS build

WORKDIR /source
# Without pip: nothing is installed where it runs.
RUN python -m venv --without-pip /opt/light-scheduler
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_PYTHON=/opt/light-scheduler/bin/python
# Dependencies first: they change less often than the code, and stay in the cache.
COPY requirements-runtime.lock ./
RUN pip install --no-deps --require-hashes -r requirements-runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY agents agents
COPY tables tables
COPY light_scheduler light_scheduler
RUN pip install --no-deps --no-build-isolation . \
    && pip uninstall --yes setuptools


FROM ${PYTHON_IMAGE}

LABEL org.opencontainers.image.title="light-scheduler" \
    org.opencontainers.image.description="Delivers each message to its Kafka topic at its time, exactly once" \
    org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 scheduler \
    && useradd --uid 10001 --gid scheduler --no-create-home --shell /usr/sbin/nologin scheduler \
    && install --directory --owner scheduler --group scheduler /var/lib/light-scheduler
COPY --from=build /opt/light-scheduler /opt/light-scheduler

ENV PATH=/opt/light-scheduler/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LIGHT_SCHEDULER_DATA_DIR=/var/lib/light-scheduler
# Set LIGHT_SCHEDULER_WEB_HOST to the container's own name: the HTTP server listens there, and other workers ask there.
# It starts so only if there is a token (docs/access.md), or with LIGHT_SCHEDULER_INSECURE=true.
EXPOSE 6066
VOLUME /var/lib/light-scheduler
WORKDIR /var/lib/light-scheduler
# As numbers: Kubernetes knows then that it is not root.
USER 10001:10001

# Ready is a worker whose partitions are restored. Other commands should run with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "light_scheduler.worker_page", "/ready"]
# A worker closes its lanes on SIGTERM; what it does not finish in time, its successor takes from the last commit.
STOPSIGNAL SIGTERM
ENTRYPOINT ["light-scheduler"]
CMD ["worker"]
