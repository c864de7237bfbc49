# The image of Stromboli: one file for every architecture that has wheels.
#
#   docker build -t stromboli .                          one image for all programs; the entry point is `stromboli`
#   docker build --target vc-scheduler -t vc-scheduler . the same files, with the entry point of one program
#
# BASE has Python 3.11, its venv module and pip; RUNTIME has the same Python at the same path and needs nothing else: no
# shell, no package manager.  `make image` makes both from Debian packages and runs this file without a daemon.

ARG BASE=python:3.11-slim-bookworm
ARG RUNTIME=${BASE}

FROM ${BASE} AS build
WORKDIR /build
COPY requirements/run.txt requirements/build.txt requirements/
# Settings of pip and certificates may be handed in as secrets; nothing of them stays in the image.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf,required=false \
    --mount=type=secret,id=certificates,target=/etc/ssl/certs/ca-certificates.crt,required=false \
    python3 -m venv --without-pip /opt/stromboli && python3 -m venv --without-pip /build/hatch \
 && python3 -m pip --python /build/hatch/bin/python install --no-cache-dir --require-hashes --only-binary :all: \
      --requirement requirements/build.txt \
 && python3 -m pip --python /opt/stromboli/bin/python install --no-cache-dir --no-compile --require-hashes \
      --only-binary :all: --requirement requirements/run.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
COPY tools/image/prune.py ./
RUN hatch/bin/python -m hatchling build --target wheel --directory dist \
 && python3 -m pip --python /opt/stromboli/bin/python install --no-cache-dir --no-compile --no-index --no-deps dist/*.whl \
 && python3 prune.py /opt/stromboli /root-of-image

FROM ${RUNTIME} AS files
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Stromboli" \
      org.opencontainers.image.description="A batch scheduler for Kubernetes that takes Volcano's place" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /root-of-image/ /
COPY --from=build /opt/stromboli /opt/stromboli
ENV PATH=/opt/stromboli/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/ \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /
USER 65532:65532

# Images named as the reference's, for manifests that state only arguments.
FROM files AS vc-scheduler
ENTRYPOINT ["/vc-scheduler"]

FROM files AS vc-controller-manager
ENTRYPOINT ["/vc-controller-manager"]

FROM files AS vc-hypernode-controller-manager
ENTRYPOINT ["/vc-hypernode-controller-manager"]

FROM files AS vc-webhook-manager
ENTRYPOINT ["/vc-webhook-manager"]

FROM files AS stromboli
ENTRYPOINT ["/opt/stromboli/bin/stromboli"]
