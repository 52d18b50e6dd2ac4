#!/usr/bin/env bash
# Package tests (packaging/build.sh). The Debian package is installed into a small root file system, which is copied from the packages of
# this machine. Its server starts as the systemd unit says; then the package is removed and purged. The container image is built, and
# its server runs with a read-only root file system. A check that cannot run on this machine prints a line that begins with
# `skipped: packages:`.
#
#   --long                     also builds a static binary for the container, which compiles all dependencies once more
#   COUNTERPART_BIN=…          the binary for the Debian package (default: the debug build)
#   COUNTERPART_STATIC_BIN=…   a static binary for the container (default with --long: a debug build, where Rust's musl target is
#                              installed)
#   COUNTERPART_TOOLS=…        the folder of the tools, where cargo-deb is installed if it is missing (default: counterpart-tools in the
#                              user's cache)
#
# Needs root on a Debian-based system, binutils and curl; for the container buildah, and musl-gcc to build the static binary. Uses the
# network only to install a missing cargo-deb.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/script_steps.sh
. tests/temporary_folder.sh
. tests/postgres_servers.sh
. tests/contract/server.sh
at_the_end() {
    stop_server
}

binary=${COUNTERPART_BIN:-${CARGO_TARGET_DIR:-target}/debug/counterpart}
static=${COUNTERPART_STATIC_BIN:-}
built=
tools=${COUNTERPART_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/counterpart-tools}
export PATH=$PATH:/usr/sbin:/sbin:$tools/bin
export COUNTERPART_PACKAGES=$scratch/packages COUNTERPART_COMPRESSION=fast
# Other accounts have folders in the scratch folder, so they must be able to enter it.
chmod 755 "$scratch"
umask 022
skips=0
shown=()

skip() {
    echo "skipped: packages: $1"
    skips=$((skips + 1))
}

seconds_since() {
    awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN {printf "%.1f", to - from}'
}

# at_most MOST VALUE WHAT: fails if VALUE is greater than MOST.
at_most() {
    awk -v most="$1" -v value="$2" 'BEGIN {exit !(value <= most)}' || fail "$3: $2, more than $1"
}

megabytes() {
    awk -v bytes="$(stat -c %s "$1")" 'BEGIN {printf "%.1f", bytes / 1e6}'
}

# `can_mount` is not empty if this machine permits a mount namespace, in which the root can be mounted read-only.
can_mount=
! unshare --mount true 2>/dev/null || can_mount=yes
read_only=${can_mount:+, read-only but for its data}

# confined ROOT DATA UID:GID COMMAND…: runs the command in the root file system ROOT, as an unprivileged account, with only the variables in
# `environment`. If mounts are possible, the command can write only to DATA and, if ROOT has this folder, to /tmp. The command replaces the
# shell.
confined() {
    local root=$1 data=$2 account=$3
    shift 3
    # Keeps only the capabilities that are needed to enter the root file system. The command loses these, too, when its account changes.
    local command=("${traced[@]}" env -i "PATH=/usr/sbin:/usr/bin:/sbin:/bin" "${environment[@]}"
        setpriv --inh-caps=-all,+sys_chroot,+setuid,+setgid,+dac_read_search -- setpriv --no-new-privs --bounding-set=-all --
        unshare --root "$root" --wd "$data" --setgid "${account#*:}" --setuid "${account%:*}" -- "$@")
    umask 077
    [ -n "$can_mount" ] || exec "${command[@]}"
    exec unshare --mount -- bash -c '
        set -e
        root=$1 data=$2
        shift 2
        mount --bind "$root" "$root"
        mount --bind "$root$data" "$root$data"
        [ ! -d "$root/tmp" ] || mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
        [ ! -d "$root/proc" ] || mount -t proc proc "$root/proc" || true
        mount -o remount,bind,ro "$root"
        exec "$@"' confined "$root" "$data" "${command[@]}"
}
traced=()
environment=()

# answered ROOT DATA UID:GID PROGRAM COMMAND…: starts a server with COMMAND, creates a store and a key with PROGRAM, and sends a request
# that must be answered. Sets `server` and `base`.
answered() {
    local place=("$1" "$2" "$3") program=$4 key
    shift 4
    rm -f "$scratch/address"
    (confined "${place[@]}" "$@") >"$scratch/address" 2>"$scratch/log" &
    server=$!
    until_served "$scratch/address" "$server" || {
        cat "$scratch/log"
        return 1
    }
    base=$(sed -n 's/^listening on //p' "$scratch/address")
    # Only the server is traced, not these commands.
    local traced=()
    (confined "${place[@]}" "$program" store create --id shop --name "My shop") >/dev/null || return
    key=$( (confined "${place[@]}" "$program" key create --store shop --name sync --scopes tickets:read)) || return
    curl --silent --show-error --fail --output "$scratch/answer" -H "x-api-key: $key" -H 'content-type: application/json' \
        -d '{"statuses":["open"]}' "$base/v1/tickets/list"
}

# packages_of NAME…: prints these packages, the essential packages, and all their dependencies that are installed on this machine.
packages_of() {
    dpkg-query --show --showformat '${db:Status-Abbrev}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n' |
        awk -F '\t' -v wanted="$*" '
            function bare(name) {
                gsub(/\([^)]*\)|:[a-z0-9]+|[ \t]/, "", name)
                return name
            }
            /^ii/ {
                needs[$2] = $4
                count = split($5, provided, ",")
                for (i = 1; i <= count; i++) provider[bare(provided[i])] = $2
                if ($3 == "yes") queue[++last] = $2
            }
            END {
                count = split(wanted, names, " ")
                for (i = 1; i <= count; i++) queue[++last] = names[i]
                for (first = 1; first <= last; first++) {
                    name = queue[first] in needs ? queue[first] : provider[queue[first]]
                    if (name == "" || name in seen) continue
                    seen[name] = 1
                    print name
                    groups = split(needs[name], group, ",")
                    for (i = 1; i <= groups; i++) {
                        choices = split(group[i], choice, "|")
                        for (j = 1; j <= choices; j++) {
                            one = bare(choice[j])
                            if (one in needs || one in provider) {
                                queue[++last] = one
                                break
                            }
                        }
                    }
                }
            }'
}

# small_root FOLDER NAME…: creates a root file system with the packages of `packages_of NAME…`, copied from this machine, as if they had
# just been installed.
small_root() {
    local root=$1 name list names
    shift
    mapfile -t names < <(packages_of "$@")
    mkdir -p "$root"/{dev,proc,run,tmp,etc,var/log,var/lib/dpkg/{info,updates}}
    chmod 1777 "$root/tmp"
    for name in bin lib lib32 lib64 libx32 sbin; do
        [ ! -L "/$name" ] || { mkdir -p "$root/usr/$name" && ln -s "usr/$name" "$root/$name"; } || return
    done
    # Documentation and translations are left out.
    dpkg-query --listfiles "${names[@]}" | grep -E '^/.' | grep -vE '^/\.$|^/usr/share/(doc|man|locale|info|i18n)/' | sort -u |
        tar --create --directory / --no-recursion --ignore-failed-read --files-from=- 2>/dev/null | tar --extract --directory "$root" || return
    mknod -m 666 "$root/dev/null" c 1 3 || install -m 666 /dev/null "$root/dev/null" || return
    cp /usr/share/base-passwd/passwd.master "$root/etc/passwd" || return
    cp /usr/share/base-passwd/group.master "$root/etc/group" || return
    printf "%s: files\n" passwd group shadow gshadow >"$root/etc/nsswitch.conf"
    for name in "${names[@]}"; do
        dpkg-query --status "$name" && echo
        for list in "/var/lib/dpkg/info/$name".list "/var/lib/dpkg/info/$name":*.list; do
            [ ! -e "$list" ] || cp "$list" "$root/var/lib/dpkg/info/"
        done
    done >"$root/var/lib/dpkg/status"
    chroot "$root" ldconfig && chroot "$root" pwconv && chroot "$root" grpconv
}

# Lists everything in a root, except the records of the package manager and of the account tools.
files() {
    (cd "$1" && find . \( -path ./var/lib/dpkg -o -path ./var/log -o -path ./run -o -path './etc/*-' -o -path ./var/cache/ldconfig \) -prune -o \
        -printf '%p %y %m %U:%G %l\n' | sort)
}

account_of() {
    awk -F: '$1 == "counterpart" {print $3 ":" $4}' "$1/etc/passwd"
}

# serve_the_unit ROOT: starts the server with the command, the account and the variables of the systemd unit.
serve_the_unit() {
    local root=$1 unit=$1/usr/lib/systemd/system/counterpart.service command
    mapfile -t environment < <(sed -n 's/^Environment=//p' "$unit" && grep -E '^[A-Z]' "$root$(sed -n 's/^EnvironmentFile=-//p' "$unit")")
    read -ra command <<<"$(sed -n 's/^ExecStart=//p' "$unit")"
    answered "$root" "$(sed -n 's/^WorkingDirectory=//p' "$unit")" "$(account_of "$root")" "${command[0]}" "${command[@]}"
}

install_package() {
    DEBIAN_FRONTEND=noninteractive dpkg --root="$root" --path-include="/usr/share/*" --install "$package" || return
    # Another program of this machine may use the port of the systemd unit. So the server gets a free port.
    grep -q '^COUNTERPART_LISTEN' "$root/etc/counterpart/environment" ||
        echo 'COUNTERPART_LISTEN=127.0.0.1:0' >>"$root/etc/counterpart/environment"
}

what_was_installed() {
    local commands command page script found
    commands=$(chroot "$root" /usr/bin/counterpart --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' | grep -v '^help$')
    for command in $commands; do
        [ -e "$root/usr/share/man/man1/counterpart-$command.1.gz" ] || fail "there is no man page of $command"
    done
    for page in "$root"/usr/share/man/man1/counterpart*.1.gz; do
        gzip -dc "$page" | grep -q '^\.SH DESCRIPTION' || fail "$page is not a man page"
    done
    for script in bash-completion/completions/counterpart zsh/vendor-completions/_counterpart fish/vendor_completions.d/counterpart.fish; do
        grep -q serve "$root/usr/share/$script" || fail "$script does not complete the command serve"
    done
    bash -n "$root/usr/share/bash-completion/completions/counterpart"
    for page in README.md README.Debian copyright docs/operating.md docs/prometheus/alerts.yaml; do
        [ -s "$root/usr/share/doc/counterpart/$page" ] || fail "there is no $page in the documentation"
    done
    [ "$(stat -c '%a %u:%g' "$root/etc/counterpart/environment")" = "640 0:$(account_of "$root" | cut -d: -f2)" ] ||
        fail "the file of settings must be readable by root and the service only (640)"
    [ "$(stat -c '%a %u:%g' "$root/var/lib/counterpart")" = "700 $(account_of "$root")" ] ||
        fail "the data folder must belong to the service, with mode 700"
    [ -L "$root/etc/systemd/system/multi-user.target.wants/counterpart.service" ] || fail "the service is not enabled"
}

# Checks the systemd unit of the package. The unit refers to other units, which are copied from this machine.
verify_unit() {
    local units=$scratch/units
    mkdir -p "$units/usr/lib/systemd" "$units/usr/bin" &&
        cp -R --preserve=links /usr/lib/systemd/system "$units/usr/lib/systemd/" &&
        cp "$root/usr/lib/systemd/system/counterpart.service" "$units/usr/lib/systemd/system/" &&
        ln "$root/usr/bin/counterpart" "$units/usr/bin/" &&
        systemd-analyze verify --man=no --recursive-errors=no --root="$units" counterpart.service
}

# The unit must allow every system call and every kind of socket that the traced server used.
calls_are_allowed() {
    local unit=$root/usr/lib/systemd/system/counterpart.service filter families others
    filter=$(sed -n 's/^SystemCallFilter=//p' "$unit")
    # A group of system calls may contain other groups, so the groups are expanded.
    systemd-analyze syscall-filter 2>/dev/null | awk -v wanted="$filter" '
        /^@/ {group = $1; next}
        NF == 1 && $1 !~ /^#/ {members[group] = members[group] " " $1}
        END {
            queue[last = 1] = wanted
            for (first = 1; first <= last; first++) {
                count = split(members[queue[first]], member, " ")
                for (i = 1; i <= count; i++) if (member[i] ~ /^@/) queue[++last] = member[i]; else print member[i]
            }
        }' | sort -u >"$scratch/allowed"
    grep -q '^read$' "$scratch/allowed" || fail "systemd-analyze printed no list of system calls"
    sed -n '/execve("\/usr\/bin\/counterpart"/,$s/^[0-9]* *//p' "$scratch/calls" >"$scratch/server.calls"
    sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' "$scratch/server.calls" | sort -u >"$scratch/made"
    grep -q '^accept' "$scratch/made" || fail "no system calls were traced"
    others=$(comm -13 "$scratch/allowed" "$scratch/made" | tr '\n' ' ')
    [ -z "$others" ] || fail "the server makes system calls that the unit does not allow: $others"
    families=$(sed -n 's/^RestrictAddressFamilies=//p' "$unit" | tr ' ' '|')
    others=$(sed -n 's/^socket\(pair\)\?(\(AF_[A-Z0-9]*\).*/\2/p' "$scratch/server.calls" | sort -u | grep -vxE "$families" || true)
    [ -z "$others" ] || fail "the server opens sockets that the unit does not allow: $others"
    # Checks the unit's setting MemoryDenyWriteExecute.
    ! grep -E '^(mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC' "$scratch/server.calls" ||
        fail "the server maps memory that is writable and executable, which the unit forbids"
}

the_same_data() {
    (confined "$root" /var/lib/counterpart "$(account_of "$root")" /usr/bin/counterpart store list) | grep -w shop
}

debian_package() {
    local started seconds score
    root=$scratch/root
    quietly "Debian package" packaging/build.sh deb "$binary"
    package=$(echo "$COUNTERPART_PACKAGES"/*.deb)
    quietly "create a small root file system" small_root "$root" adduser libc6 libgcc-s1
    files "$root" >"$scratch/before"

    started=$EPOCHREALTIME
    quietly "install it" install_package
    quietly "serve as the unit says$read_only" serve_the_unit "$root"
    seconds=$(seconds_since "$started")
    at_most 30 "$seconds" "seconds from the installation to the first answered request"
    [ -n "$can_mount" ] || skip "a read-only root: this machine permits no mounts"
    stop_server
    found=$(find "$root/var/lib/counterpart" -perm /077 -print -quit)
    [ -z "$found" ] || fail "other accounts can read the data: $found"

    echo "== what was installed"
    what_was_installed
    if command -v systemd-analyze >/dev/null; then
        quietly "check the unit" verify_unit
        [ ! -s "$scratch/step.log" ] || { cat "$scratch/step.log"; fail "systemd-analyze reports problems of the unit"; }
        quietly "security score of the unit" systemd-analyze security --no-pager --offline=yes "$root/usr/lib/systemd/system/counterpart.service"
        score=$(sed -n 's/.*Overall exposure level[^0-9]*\([0-9.]*\).*/\1/p' "$scratch/step.log")
        at_most 2.5 "${score:?no score}" "security exposure of the unit"
        score=", exposure $score of 10"
    else
        skip "the unit: no systemd-analyze"
    fi

    quietly "install it again" install_package
    quietly "the data is unchanged" the_same_data
    quietly "remove it" dpkg --root="$root" --remove counterpart
    [ ! -e "$root/usr/bin/counterpart" ] && [ -e "$root/etc/counterpart/environment" ] ||
        fail "removing the package must remove the program and leave the settings"
    quietly "purge it" dpkg --root="$root" --purge counterpart
    grep -q /var/lib/counterpart "$scratch/step.log" || fail "a purge does not report where the data stays"
    [ -s "$root/var/lib/counterpart/counterpart.db" ] || fail "a purge removed the data"
    files "$root" | grep -vE '^\./var/lib/counterpart(/| )' | quietly "a purge leaves no other files" diff "$scratch/before" -

    # Installs and purges the package again, this time without the program adduser. The data is deleted before the purge. A purge keeps only
    # data, so this one must leave no file.
    rm -rf -- "$root/var/lib/counterpart" "$root"/usr/sbin/{adduser,addgroup,deluser,delgroup}
    chroot "$root" userdel counterpart
    files "$root" >"$scratch/before"
    quietly "install it without adduser" install_package
    if command -v strace >/dev/null && command -v systemd-analyze >/dev/null; then
        traced=(strace -D -f -qq -o "$scratch/calls")
        quietly "serve under strace" serve_the_unit "$root"
        traced=()
        stop_server
        sleep 0.2
        echo "== system calls"
        calls_are_allowed
    else
        skip "the system calls that the unit allows: no strace, or no systemd-analyze"
    fi
    rm -rf -- "$root/var/lib/counterpart"/*
    quietly "purge it without data" dpkg --root="$root" --purge counterpart
    files "$root" | quietly "a purge leaves no other files" diff "$scratch/before" -
    [ -z "$(account_of "$root")" ] || fail "a purge without data must remove the account"
    shown+=(".deb $(megabytes "$package") MB, a request answered $seconds s after the installation began${score:-}")
}

# serve_the_image ROOT: starts the server with the command, the account and the variables of the image.
serve_the_image() {
    answered "$1" "$data" "$user" "${command[0]}" "${command[@]}"
}

# of_image FIELD: prints a field of the image's configuration.
of_image() {
    "${buildah[@]}" inspect --type image --format "{{.Docker.Config.$1}}" counterpart
}

image() {
    local archive storage=$scratch/storage container root user data command health seconds started port tries
    buildah=(buildah --root "$storage/root" --runroot "$storage/run" --storage-driver vfs)
    quietly "image" packaging/build.sh container "$static"
    archive=$(echo "$COUNTERPART_PACKAGES"/*.tar.gz)
    # The limit is higher for a debug build, which is larger.
    at_most "$([ -n "$built" ] && echo 60 || echo 30)" "$(megabytes "$archive")" "MB of the image"

    # Loads the archive, as another machine does. It is unpacked first, since podman and buildah of 2022 misread compressed archives.
    started=$EPOCHREALTIME
    gunzip <"$archive" >"$scratch/image.tar"
    quietly "load the image" "${buildah[@]}" pull "docker-archive:$scratch/image.tar"
    "${buildah[@]}" tag "$(tail -n 1 "$scratch/step.log")" counterpart
    container=$("${buildah[@]}" from --pull-never counterpart)
    root=$("${buildah[@]}" mount "$container")
    [ -z "$(find "$root" -type f ! -name counterpart -print -quit)" ] || fail "the image must contain no file besides the program"
    user=$(of_image User)
    [[ $user =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || fail "the image must name its account by numbers, and not root: $user"
    data=$(of_image WorkingDir)
    [[ $(of_image Volumes) == *"$data"* ]] || fail "the data folder $data is not a volume of the image: $(of_image Volumes)"
    mapfile -t environment < <("${buildah[@]}" inspect --type image --format '{{range .Docker.Config.Env}}{{println .}}{{end}}' counterpart | grep =)
    mapfile -t command < <("${buildah[@]}" inspect --type image --format \
        '{{range .Docker.Config.Entrypoint}}{{println .}}{{end}}{{range .Docker.Config.Cmd}}{{println .}}{{end}}' counterpart | grep .)
    mapfile -t health < <("${buildah[@]}" inspect --type image --format '{{range .Docker.Config.Healthcheck.Test}}{{println .}}{{end}}' counterpart | grep .)
    [ "${health[0]:-}" = CMD ] || fail "the image has no health check"
    # Another program of this machine may use the port of the image. So the server gets a free port.
    environment+=("COUNTERPART_LISTEN=0.0.0.0:$(free_port)")

    quietly "serve as the image says, as $user$read_only" serve_the_image "$root"
    seconds=$(seconds_since "$started")
    [ -n "$can_mount" ] || skip "a read-only root of the container: this machine permits no mounts"
    found=$(find "$root" -newer "$archive" -type f ! -path "$root$data/*" ! -name counterpart -print -quit)
    [ -z "$found" ] || fail "the server wrote outside of the data folder: $found"
    quietly "health" image_health
    stop_server
    ! image_health >/dev/null 2>&1 || fail "the health check succeeds although the server has ended"
    shown+=("image $(megabytes "$archive") MB, a request answered $seconds s after it began to load, as $user")
}

musl=$(uname -m)-unknown-linux-musl

can_build_static() {
    command -v musl-gcc >/dev/null && [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]
}

build_static() {
    quietly "build a static binary" cargo build --quiet --locked --target "$musl" --bin counterpart
    static=${CARGO_TARGET_DIR:-target}/$musl/debug/counterpart
    built=yes
}

image_health() {
    (confined "$root" "$data" "$user" "${health[@]:1}")
}

if [ "$(id -u)" -ne 0 ]; then
    skip "all of them: needs root"
elif ! command -v dpkg-query >/dev/null || [ ! -d /usr/share/base-passwd ]; then
    skip "Debian package: not on Debian"
elif ! command -v cargo-deb >/dev/null &&
    ! env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$tools" cargo-deb@3.8.0 >"$scratch/log" 2>&1; then
    skip "Debian package: cargo-deb cannot be installed: $(tail -1 "$scratch/log")"
else
    debian_package
fi
if [ "$(id -u)" -ne 0 ]; then
    :
elif ! command -v buildah >/dev/null; then
    skip "container: no buildah"
elif [ -z "$static" ] && [ "${1:-}" != --long ]; then
    skip "container: no static binary (COUNTERPART_STATIC_BIN), and none is built without --long"
elif [ -z "$static" ] && ! can_build_static; then
    skip "container: no static binary (COUNTERPART_STATIC_BIN), and none can be built: no target $musl, or no musl-gcc"
else
    [ -n "$static" ] || build_static
    image
fi
printf -v all '%s; ' "${shown[@]}"
echo "packages: ${all}$skips skipped"
