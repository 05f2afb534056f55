# One image for all processes: the argument selects the process.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
# Installers and build tools are in this stage only, not in the final image.
COPY requirements-build.lock ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements-build.lock
# Install libraries without their tests. Bytecode is compiled here because processes cannot write it. It contains no
# file times, so that the same sources produce the same image.
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
# Check that all libraries of the processes are installed and compatible with the base image.
RUN python -B -c 'import apiserver.metrics.run, controller.models.run, controller.run, webhooks.run, ortools.sat.python.cp_model'
USER 65532:65532
ENTRYPOINT ["stowplan"]
CMD ["--help"]
