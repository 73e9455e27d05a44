# The worker's image: `grove` and its compiled kernels, nothing that compiles.
#
#   docker build -t streamgrove:0.2.0.dev0 .
#   docker build -t streamgrove:0.2.0.dev0 --platform linux/arm64 --build-arg KERNEL_CPU=generic .

FROM python:3.11.14-slim-bookworm AS base

# The kernels are compiled here and run elsewhere: for a processor that every node has, not for the builder's.
# x86-64-v3 = AVX2 and FMA (Intel since 2013, AMD since 2015). Without its features spelled out (empty: those of the
# name alone) numba would add the builder's own and miss its cache on any other machine.
ARG KERNEL_CPU=x86-64-v3
ENV NUMBA_CPU_NAME=${KERNEL_CPU} \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/var/cache/streamgrove \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PATH=/opt/streamgrove/bin:$PATH


FROM base AS build

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN python -m venv /opt/streamgrove

# Dependencies first, those of dependencies too in the versions that were tested: this layer is rebuilt only when the
# pins change. Empty packages stand in for ours.
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
RUN mkdir core topics streamapp \
    && touch core/__init__.py topics/__init__.py streamapp/__init__.py \
    && pip install --constraint constraints.txt --only-binary=:all: --no-binary=streamgrove '.[web,bridge,msk-iam,otel,protobuf]' \
    && pip uninstall --yes streamgrove

COPY core core
COPY topics topics
COPY streamapp streamapp
RUN pip install --no-deps .

# numba takes a kernel from its cache only if the source's modification time is unchanged to the nanosecond, and image
# layers keep whole seconds: so whole seconds it is, before bytecode and kernels are compiled.
RUN find /opt/streamgrove -name '*.py' -exec touch --date=@1700000000 {} + \
    && python -m compileall -q /opt/streamgrove/lib \
    && grove warm


FROM base AS worker

RUN groupadd --gid 10001 grove \
    && useradd --uid 10001 --gid grove --no-create-home --home-dir /var/lib/streamgrove --shell /usr/sbin/nologin grove \
    && install --directory --owner=grove --group=grove /var/lib/streamgrove /var/cache/streamgrove

COPY --from=build /opt/streamgrove /opt/streamgrove
COPY --from=build --chown=grove:grove /var/cache/streamgrove /var/cache/streamgrove
COPY examples/data /usr/share/streamgrove/data

# Probes and metrics are read from outside the container; on a bare machine the default is loopback.
ENV GROVE_WEB_HOST=0.0.0.0 \
    GROVE_WEB_PORT=6066 \
    GROVE_STATE_DIR=/var/lib/streamgrove

USER 10001:10001
WORKDIR /var/lib/streamgrove
VOLUME ["/var/lib/streamgrove"]
EXPOSE 6066
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['GROVE_WEB_PORT']}/livez\", timeout=4)"]

ENTRYPOINT ["grove"]
CMD ["worker"]
