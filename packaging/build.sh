#!/usr/bin/env bash
# Builds a package of the server, and prints the path and the size of the package.
#
#   packaging/build.sh deb [BINARY]          a Debian package, by cargo-deb
#   packaging/build.sh container [BINARY]    a container image, by buildah; BINARY has to be static. To load the image:
#                                            gunzip < FILE | docker load, or podman load
#   COUNTERPART_PACKAGES=…                   the folder for the packages (default: target/packages)
#   COUNTERPART_COMPRESSION=fast             compresses less; for tests
#
# Without BINARY, the script first builds the program with the profile dist. The build for the container needs musl-gcc (Debian: musl-tools)
# and Rust's musl target (rustup target add x86_64-unknown-linux-musl). The program itself prints the man pages and the completions. The
# script always needs strip and readelf (Debian: binutils).
set -euo pipefail

fail() {
    printf 'FAILED: %s\n' "$1" >&2
    exit 1
}

what=${1:-}
case $what in
    deb | container) ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
[ -z "${2:-}" ] || binary=$(realpath -e -- "$2") || fail "there is no $2"
packages=$(realpath -m -- "${COUNTERPART_PACKAGES:-$(dirname "$0")/../target/packages}")
cd "$(dirname "$0")/.."

# The folder of the assets that Cargo.toml names under [package.metadata.deb]; each run creates it anew.
staged=target/packaging
version=$(sed -n '/^\[package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The time stamp of the packed files is fixed, so that the same program gives the same .deb, and the same layer of the image.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

# built [OPTION…]: builds the program and sets `binary`.
built() {
    echo "== cargo build --profile dist $*"
    cargo build --quiet --locked --profile dist --bin counterpart "$@"
    binary=${CARGO_TARGET_DIR:-target}/${2:+$2/}dist/counterpart
}

size() {
    numfmt --to=si --format=%.1f --suffix=B "$(stat -c %s "$1")"
}

deb() {
    command -v cargo-deb >/dev/null || fail "cargo-deb is missing: cargo install --locked cargo-deb"
    [ -n "${binary:-}" ] || built
    rm -rf -- "$staged"
    mkdir -p "$staged/man" "$staged/completions" "$packages"
    strip -o "$staged/counterpart" "$binary"
    # The environment is empty, so that no variable of this machine changes the output.
    env -i "$binary" man "$staged/man"
    env -i "$binary" completions bash >"$staged/completions/counterpart"
    env -i "$binary" completions zsh >"$staged/completions/_counterpart"
    env -i "$binary" completions fish >"$staged/completions/counterpart.fish"
    local options=()
    [ "${COUNTERPART_COMPRESSION:-}" != fast ] || options=(--fast)
    # cargo-deb neither builds nor strips: it packs the program that was stripped above.
    made=$(cargo-deb --no-build --no-strip --locked --output "$packages/" "${options[@]}" | tail -n 1)
    echo "$made $(size "$made")"
}

container() {
    command -v buildah >/dev/null || fail "buildah is missing: apt install buildah"
    [ -n "${binary:-}" ] || command -v musl-gcc >/dev/null || fail "musl-gcc is missing: apt install musl-tools"
    [ -n "${binary:-}" ] || built --target "$(uname -m)-unknown-linux-musl"
    if readelf --wide --program-headers "$binary" | grep -q INTERP; then
        fail "$binary is not static: build it with --target $(uname -m)-unknown-linux-musl"
    fi
    rm -rf -- "$staged"
    mkdir -p "$staged/image/data" "$packages"
    strip -o "$staged/image/counterpart" "$binary"
    # buildah stores images in a temporary folder of its own: the image storage of the machine may use another driver, and need more
    # permissions.
    storage=$(mktemp -d)
    trap 'rm -rf -- "$storage"' EXIT
    local buildah=(buildah --root "$storage/root" --runroot "$storage/run" --storage-driver vfs)
    # Docker's image format, since the OCI format has no HEALTHCHECK. Podman reads Docker's format too.
    "${buildah[@]}" bud --quiet --isolation chroot --format docker --layers=false --timestamp "$SOURCE_DATE_EPOCH" \
        --label "org.opencontainers.image.version=$version" --tag "counterpart:$version" \
        --file packaging/Containerfile "$staged/image" >/dev/null
    made=$packages/counterpart-$version-$(uname -m).tar.gz
    "${buildah[@]}" push --quiet "counterpart:$version" "docker-archive:$storage/image.tar:localhost/counterpart:$version"
    gzip --no-name "$([ "${COUNTERPART_COMPRESSION:-}" = fast ] && echo -1 || echo -9)" <"$storage/image.tar" >"$made"
    echo "$made $(size "$made") compressed"
}

"$what"
