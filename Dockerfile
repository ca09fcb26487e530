# The service as one program, with only Debian's glibc and certificates: `docker build -t postrider .`
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
# npm fetches the Bun that package.json names. Everything comes from Debian or the npm registry.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates npm \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# Lets npm and Bun trust the base image's certificates, for a registry behind a TLS proxy.
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
WORKDIR /build
# The packages change less often than the source, so they are a layer of their own.
COPY package.json bun.lock ./
COPY scripts/setup.sh scripts/
# For a registry of your own: --secret id=npmrc,src=.npmrc
RUN --mount=type=secret,id=npmrc,target=/build/.npmrc sh scripts/setup.sh
COPY LICENSE tsconfig.json ./
COPY db db
COPY docs docs
COPY sdk/LICENSE sdk/README.md sdk/package.json sdk/
COPY sdk/src sdk/src
COPY sdk/types sdk/types
COPY scripts scripts
COPY src src
RUN node_modules/.bin/bun scripts/build.ts

# Makes the root of the image: the libraries of the program and of libSQL's addon, the files that glibc reads, and the base
# image's certificates (also as cert.pem, where Bun looks). Security scanners read the versions in status.d.
RUN set -eu; root=/build/root; \
  install -d $root/etc $root/var/lib/dpkg/status.d; \
  install -d -m 1777 $root/tmp; \
  install -d -m 0700 -o 65532 -g 65532 $root/data; \
  linked=$(ldd dist/postrider node_modules/@libsql/linux-*-gnu/index.node); \
  echo "$linked" | grep -o '/lib[^ ]*' | sort -u | xargs cp -L --parents -t $root; \
  cp -L --parents -t $root /etc/os-release /etc/nsswitch.conf /etc/host.conf /etc/ssl/certs/ca-certificates.crt; \
  ln -s certs/ca-certificates.crt $root/etc/ssl/cert.pem; \
  for name in libc6 libgcc-s1 ca-certificates; do \
    cp -L --parents -t $root /usr/share/doc/$name/copyright; \
    dpkg -s $name >$root/var/lib/dpkg/status.d/$name; \
  done; \
  install -D -m 0644 dist/postrider.licenses $root/usr/share/doc/postrider/copyright; \
  install -D dist/postrider $root/usr/local/bin/postrider; \
  printf '%s:x:%s:%s::%s:/sbin/nologin\n' root 0 0 / postrider 65532 65532 /data >$root/etc/passwd; \
  printf '%s:x:%s:\n' root 0 postrider 65532 >$root/etc/group

FROM scratch
COPY --from=build /build/root /
# BUN_JSC_forceRAMSize makes the heap be collected as on a small machine: a tenth less memory with a long queue, at no measured cost.
ENV PATH=/usr/local/bin \
    DATA_DIR=/data \
    BUN_JSC_forceRAMSize=400000000
USER 65532:65532
WORKDIR /data
VOLUME /data
# API, SMTP, and the name server. The last runs if DNS_PORT=5353 and PUBLIC_IPS are set.
EXPOSE 3000 2525 5353/tcp 5353/udp
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 CMD ["postrider", "readyz"]
ENTRYPOINT ["postrider"]
CMD ["serve"]
