# One image for all three processes: the verb is the argument.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/stowplan \
 && /opt/stowplan/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY apiserver apiserver
COPY webhooks webhooks
COPY controller controller
RUN /opt/stowplan/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
 && /opt/stowplan/bin/pip install --no-cache-dir --no-deps /dist/*.whl \
 && /opt/stowplan/bin/stowplan version

FROM python:3.11-slim
COPY --from=build /opt/stowplan /opt/stowplan
ENV PATH=/opt/stowplan/bin:$PATH PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["stowplan"]
CMD ["--help"]
