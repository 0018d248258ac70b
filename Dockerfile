# PPS in a container, without root. `docker compose up -d` (compose.yaml) builds and runs it.
FROM python:3.13-slim AS build
WORKDIR /src
COPY config/requirements/base.txt config/requirements/build.txt config/requirements/
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --require-hashes -r config/requirements/build.txt -r config/requirements/base.txt
COPY pyproject.toml README.md LICENSE ./
COPY pps pps
COPY config config
COPY skills skills
COPY entities/_template entities/_template
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin pps \
 && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PPS_HOME=/data \
    PPS_LOGS__FORMAT=json \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
VOLUME /data
EXPOSE 8377
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8377/health', timeout=8)"]
ENTRYPOINT ["pps"]
CMD ["serve", "--host", "0.0.0.0"]
