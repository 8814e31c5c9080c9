# The program alone on a small Debian: no compiler, no shell tools beyond the base, no root.
# The database is another container; DATABASE_URL says where.

FROM rust:1.95-slim-trixie AS build
WORKDIR /build
# ring, the cryptography behind TLS, brings a little C.
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cargo build --release --locked && strip target/release/permit-notifier

FROM debian:trixie-slim
# The certificates prove the database server (sslmode=verify-full) and, later, the mail server.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin permits \
    && install -d -o permits -g permits -m 0700 /data
COPY --from=build /build/target/release/permit-notifier /usr/local/bin/permit-notifier
# Numbers, so that orchestrators can see that it is not root.
USER 10001:10001
WORKDIR /data
# All that is written goes to /data, uploads on their way too, which may be larger than memory; the rest of the
# file system may be read-only.
VOLUME /data
ENV DATA_DIR=/data TMPDIR=/data LISTEN_ADDR=0.0.0.0:8080 LOG_FORMAT=json
EXPOSE 8080
STOPSIGNAL SIGTERM
# Liveness only: restarting this container does not bring a database back. bash is a part of the
# base image and opens the connection by itself, so that no HTTP client has to be installed. A
# container that runs without the web role opens no port: start it with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /livez HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r -t 2 _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["permit-notifier"]
CMD ["serve"]
