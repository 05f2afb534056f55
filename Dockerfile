# One image for all three processes: the verb is the argument.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
# What installs and builds stays in this stage: no installer is in the image.
COPY requirements-build.lock ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements-build.lock
# Libraries, without their own tests. Bytecode is made once, since processes cannot write it, and says nothing of the
# times of files, so that the same sources make the same image.
COPY requirements.lock ./
RUN python -m venv --without-pip /opt/stowplan \
 && /opt/build/bin/pip --python /opt/stowplan/bin/python install --no-cache-dir --no-compile --require-hashes \
    --only-binary :all: -r requirements.lock \
 && find /opt/stowplan/lib -type d -name tests -prune -exec rm -r {} + \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/stowplan/lib
COPY pyproject.toml README.md LICENSE ./
COPY apiserver apiserver
COPY webhooks webhooks
COPY controller controller
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
 && /opt/build/bin/pip --python /opt/stowplan/bin/python install --no-cache-dir --no-compile --no-deps \
    --no-index /dist/*.whl \
 && cd /opt/stowplan/lib/python3*/site-packages \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash apiserver webhooks controller

FROM python:3.11-slim-bookworm
COPY --from=build /opt/stowplan /opt/stowplan
ENV PATH=/opt/stowplan/bin:$PATH PYTHONUNBUFFERED=1
# Every library that the processes load is there, and fits the base.
RUN python -B -c 'import apiserver.metrics.run, controller.run, webhooks.run, ortools.sat.python.cp_model'
USER 65532:65532
ENTRYPOINT ["stowplan"]
CMD ["--help"]
