# The agent as an image for amd64 and arm64: docker buildx build --platform linux/amd64,linux/arm64 -t tagferry .
# Pin both bases by digest where you build: their tags move with Debian's security updates.
ARG NODE_VERSION=24.21.0

FROM --platform=$BUILDPLATFORM node:${NODE_VERSION}-bookworm-slim AS build
ARG TARGETARCH
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN node packaging/release.ts /out ${TARGETARCH}

FROM node:${NODE_VERSION}-bookworm-slim
COPY --from=build /out /usr/lib/tagferry
COPY packaging/healthcheck.js /usr/lib/tagferry/healthcheck.js
# By number, so that an orchestrator can see that it is not root. The volume takes its owner from the folder.
RUN mkdir -p /var/lib/tagferry /etc/tagferry && chown 10001:10001 /var/lib/tagferry && chmod 0700 /var/lib/tagferry
ENV STATE_DIRECTORY=/var/lib/tagferry NODE_COMPILE_CACHE=/tmp/tagferry MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_TRIM_THRESHOLD_=1048576
USER 10001:10001
WORKDIR /var/lib/tagferry
VOLUME /var/lib/tagferry
EXPOSE 8421
STOPSIGNAL SIGTERM
# /healthz is about the agent itself: a service that cannot be reached is no reason to start it anew.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["node", "/usr/lib/tagferry/healthcheck.js"]
ENTRYPOINT ["node", "--max-semi-space-size=4", "--max-old-space-size=2000", "--disable-sigusr1", "--disable-proto=delete", "/usr/lib/tagferry/main.js"]
CMD ["run", "-c", "/etc/tagferry/tagferry.yaml"]
