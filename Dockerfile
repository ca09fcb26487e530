# The service as one program on a bare Debian: `docker build -t postrider .`
# The program needs glibc (libSQL's addon), so no Alpine.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
# npm fetches the Bun that package.json names; nothing comes from elsewhere than Debian and the npm registry.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates npm \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# For a registry behind a proxy with a certificate of its own: npm and Bun take the base image's, too.
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /build
# The packages are a layer of their own: they change less often than the source.
COPY package.json bun.lock ./
COPY scripts/setup.sh scripts/
# For a registry of your own: --secret id=npmrc,src=.npmrc
RUN --mount=type=secret,id=npmrc,target=/build/.npmrc sh scripts/setup.sh
COPY LICENSE ./
COPY db db
COPY scripts scripts
COPY src src
RUN node_modules/.bin/bun scripts/build.ts

FROM ${BASE}
# For embedded replicas: libSQL takes the certificates of the system.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
  && groupadd --gid 65532 postrider \
  && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /data --shell /usr/sbin/nologin postrider \
  && install -d -m 0700 -o postrider -g postrider /data
COPY --from=build /build/dist/postrider /usr/local/bin/postrider
COPY --from=build /build/dist/postrider.licenses /usr/share/doc/postrider/copyright
# The second has the heap collected as on a small machine: a tenth less memory beside a long queue, at no measured cost.
ENV DATA_DIR=/data \
    BUN_JSC_forceRAMSize=300000000
USER 65532:65532
WORKDIR /data
VOLUME /data
# API, SMTP, and the name server, which runs where DNS_PORT=5353 and PUBLIC_IPS are set.
EXPOSE 3000 2525 5353/tcp 5353/udp
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 CMD ["postrider", "readyz"]
ENTRYPOINT ["postrider"]
CMD ["serve"]
