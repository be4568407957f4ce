# A worker, or any other `light-scheduler` command, as a user without rights.
#
#   docker build -t light-scheduler .
#   docker run --rm light-scheduler --help

FROM python:3.11-slim AS build

WORKDIR /source
RUN python -m venv /opt/light-scheduler
ENV PATH=/opt/light-scheduler/bin:$PATH
# Dependencies first: they change less often than the code, and stay in the cache.
COPY requirements-runtime.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY agents agents
COPY tables tables
COPY light_scheduler light_scheduler
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation . \
    && pip uninstall --yes setuptools


FROM python:3.11-slim

RUN groupadd --gid 10001 scheduler \
    && useradd --uid 10001 --gid scheduler --no-create-home --shell /usr/sbin/nologin scheduler \
    && install --directory --owner scheduler --group scheduler /var/lib/light-scheduler
COPY --from=build /opt/light-scheduler /opt/light-scheduler

ENV PATH=/opt/light-scheduler/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LIGHT_SCHEDULER_DATA_DIR=/var/lib/light-scheduler
# Set LIGHT_SCHEDULER_WEB_HOST to the container's own name: the HTTP server listens there, and other workers ask there.
EXPOSE 6066
VOLUME /var/lib/light-scheduler
WORKDIR /var/lib/light-scheduler
USER scheduler

# Ready is a worker whose partitions are restored. Other commands should run with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen('http://%s:%s/ready' % (os.environ.get('LIGHT_SCHEDULER_WEB_HOST', '127.0.0.1'), os.environ.get('LIGHT_SCHEDULER_WEB_PORT', '6066')), timeout=4)"]
# A worker closes its lanes on SIGTERM; what it does not finish in time, its successor takes from the last commit.
STOPSIGNAL SIGTERM
ENTRYPOINT ["light-scheduler"]
CMD ["worker"]
