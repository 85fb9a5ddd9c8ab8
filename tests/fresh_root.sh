#!/usr/bin/env bash
# Runs a command as a stranger would: in a Debian or Ubuntu that has nothing but git, in a clone of this repository.
#
#     tests/fresh_root.sh [option…] COMMAND…      for example: tests/fresh_root.sh bash cmake/bootstrap.sh test
#     tests/fresh_root.sh [--release NAME] --check   says whether such a root can be made here, and makes the archive of one
#     tests/fresh_root.sh --remove NAME           removes a root that --root has kept
#
#     --root NAME        keeps the root under this name, and takes it up where it was kept; without it, it is removed
#     --toolkit          with the machine's CUDA toolkit, at its own place, read-only; without it, the root has none
#     --hide PATTERN     without the toolkit's files of these names, for example '*nccl*' (any number of times)
#     --user             as an ordinary user, without root and without sudo; otherwise as root
#     --folder NAME      where the clone is, below the user's home; sluice unless given
#     --shallow          a clone with --depth 1
#     --release NAME     of another release than this machine's, by its code name, for example trixie (Debian 13), noble (Ubuntu 24.04)
#                        or resolute (Ubuntu 26.04); the toolkit stays this machine's
#
# The clone is of HEAD, and what is not committed is laid over it. The command runs in it, and its status is
# this script's; 3 where no root can be made. Roots, and the archive that they are unpacked from, are in SLUICE_FRESH_ROOTS
# (/var/tmp/sluice_fresh_roots). A root is of this machine's release, from the mirrors of its apt sources, unless another one is
# named, which comes from deb.debian.org or archive.ubuntu.com. Of the machine it has the kernel, the processor's settings
# (OPENBLAS_*), and what reaches the network: resolver, proxies, certificates.
set -euo pipefail

roots=${SLUICE_FRESH_ROOTS:-/var/tmp/sluice_fresh_roots}
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
    printf 'fresh_root: %s\n' "$1" >&2
    exit "${2:-2}"
}
no_root() { fail "no fresh root can be made here: $1" 3; }

# --- the archive: a minimal system with git

# Mirrors of $codename, a line each: address, suite, component. The machine's own, unless --release was given.
sources() {
    local suite
    if [[ $distribution == debian ]]; then
        printf 'http://deb.debian.org/%s main\n' "debian $codename" "debian $codename-updates" "debian-security $codename-security"
        return
    elif [[ $distribution == ubuntu ]]; then
        for suite in "$codename" "$codename-updates" "$codename-security"; do
            printf "http://archive.ubuntu.com/ubuntu $suite %s\n" main universe
        done
        return
    fi
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | grep -E " $codename(-updates|-security)? (main|universe)$"
}

# Sets `distribution` to the one that has a release of this name.
find_distribution() {
    local mirror
    for mirror in deb.debian.org/debian archive.ubuntu.com/ubuntu; do
        if /usr/lib/apt/apt-helper download-file "http://$mirror/dists/$codename/InRelease" "$roots/InRelease" &>/dev/null; then
            distribution=${mirror#*/}
            return
        fi
    done
    fail "--release: expected the code name of a release of Debian or Ubuntu, such as trixie or noble, found '$codename', of which neither deb.debian.org nor archive.ubuntu.com tells"
}

make_archive() {
    local mirror work
    [[ $(id -u) -eq 0 ]] || no_root "that needs root"
    command -v apt-get >/dev/null || no_root "there is no apt-get, whose mirrors would be taken"
    unshare --mount --pid --fork true 2>/dev/null || no_root "unshare may not separate mounts and processes"
    codename=${release:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}
    archive=$roots/$codename.tar
    # Packages of an old archive would be upgraded in every root.
    if [[ -n $(find "$archive" -mtime -14 2>/dev/null) ]]; then return; fi
    mkdir -p "$roots"
    exec 8>"$roots/lock"
    flock 8
    if [[ -n $(find "$archive" -mtime -14 2>/dev/null) ]]; then return; fi

    if ! command -v debootstrap >/dev/null; then
        echo "fresh_root: installing debootstrap"
        { apt-get -q update && apt-get -qy install --no-install-recommends debootstrap; } >"$roots/debootstrap.log" 2>&1 ||
            no_root "debootstrap is missing and could not be installed, see $roots/debootstrap.log"
    fi
    if [[ -n $release ]]; then find_distribution; fi
    mirror=$(sources | awk -v suite="$codename" '$2 == suite { print $1; exit }')
    [[ -n $mirror ]] || no_root "apt's sources name no mirror of $codename"
    echo "fresh_root: making a minimal $codename"
    work=$(mktemp -d "$roots/new.XXXXXX")
    # shellcheck disable=SC2064 # this one
    trap "rm -rf --one-file-system '$work'" EXIT
    # A debootstrap that is older than the release, or without the keys of the other distribution: apt checks what it fetches in the root.
    local script=() keys=()
    case $distribution in
    debian) script=(sid) ;;
    ubuntu)
        script=(gutsy)
        [[ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ]] || keys=(--no-check-gpg)
        ;;
    esac
    debootstrap --variant=minbase "${keys[@]}" "$codename" "$work" "$mirror" "${script[@]}" >"$roots/debootstrap.log" 2>&1 ||
        no_root "debootstrap failed, see $roots/debootstrap.log"
    sources | awk '{ print "deb", $1, $2, $3 }' >"$work/etc/apt/sources.list"
    # Proxies and the like, but no hooks of this machine's.
    apt-config dump | grep -E '^Acquire::(http|https)::(Proxy|Verify|Ca)' >"$work/etc/apt/apt.conf.d/90machine" || true
    useradd --root "$work" --create-home --shell /bin/bash stranger
    in_root "$work" root / sh -c 'apt-get -q update && apt-get -qy upgrade &&
        apt-get -qy install --no-install-recommends git ca-certificates && apt-get clean && rm -rf /var/lib/apt/lists/*' \
        >"$roots/debootstrap.log" 2>&1 || no_root "git could not be installed, see $roots/debootstrap.log"
    tar -C "$work" -cf "$archive.part" . && mv "$archive.part" "$archive"
    rm -rf --one-file-system "$work"
    trap - EXIT
    exec 8>&-
}

# --- running in a root

# What a command is given of the machine's environment.
passed_on() { env | grep -E '^(OPENBLAS_[A-Z0-9_]*|(http|https|no|HTTP|HTTPS|NO)_(proxy|PROXY)|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|DEFAULT_TIMEOUT))=' || true; }

# in_root ROOT USER FOLDER COMMAND…: mounts are of a namespace that ends with the command, and so do its processes.
in_root() { unshare --mount --pid --fork --kill-child bash "${BASH_SOURCE[0]}" --enter "$@"; }

enter() {
    local root=$1 user=$2 folder=$3 home=/root file
    shift 3
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        if [[ -f $file && -d $root${file%/*} ]]; then cp -L "$file" "$root$file"; fi
    done
    if [[ -n ${FRESH_ROOT_TOOLKIT:-} ]]; then
        mkdir -p "$root$FRESH_ROOT_TOOLKIT" "$root/usr/local"
        if [[ -n ${FRESH_ROOT_HIDE:-} ]]; then
            hide "$root"
        else
            mount --bind "$FRESH_ROOT_TOOLKIT" "$root$FRESH_ROOT_TOOLKIT"
            mount -o remount,bind,ro "$root$FRESH_ROOT_TOOLKIT"
        fi
        if [[ $FRESH_ROOT_TOOLKIT != /usr/local/cuda ]]; then ln -sfn "$FRESH_ROOT_TOOLKIT" "$root/usr/local/cuda"; fi
    fi
    if [[ $user != root ]]; then home=/home/$user; fi
    local environment
    mapfile -t environment < <(passed_on)
    exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i "HOME=$home" "USER=$user" TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" \
        /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
}

# A layer over the toolkit, in which files are removed.
hide() {
    local root=$1 layer=$1/var/tmp/toolkit pattern
    rm -rf "$layer"
    mkdir -p "$layer/over" "$layer/work"
    mount -t overlay overlay -o "lowerdir=$FRESH_ROOT_TOOLKIT,upperdir=$layer/over,workdir=$layer/work" "$root$FRESH_ROOT_TOOLKIT"
    while IFS= read -r pattern; do
        find "$root$FRESH_ROOT_TOOLKIT/" -depth -name "$pattern" -exec rm -rf {} +
    done <<<"$FRESH_ROOT_HIDE"
}

# The folder of the toolkit whose nvcc this machine would use. The nvcc on the path may be a script that starts another one.
toolkit() {
    local nvcc top
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    [[ -x $nvcc ]] || fail "--toolkit: there is no nvcc on the path or in /usr/local/cuda"
    top=$("$nvcc" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
    [[ -d $top ]] || fail "--toolkit: $nvcc --dryrun names no folder of its toolkit"
    top=$(cd "$top" && pwd -P)
    [[ -x $top/bin/nvcc ]] || fail "--toolkit: $nvcc names $top as its toolkit; expected bin/nvcc in it"
    [[ $top != /usr ]] || fail "--toolkit: nvcc's toolkit is $top; expected one in a folder of its own"
    echo "$top"
}

clone() {
    local to=$1 depth=$2
    # shellcheck disable=SC2086 # no option, or one
    git clone -q $depth "file://$repository" "$to"
    # What is not committed comes along, new files too.
    local index tree
    index=$(mktemp) && cp "$(git -C "$repository" rev-parse --path-format=absolute --git-path index)" "$index"
    tree=$(cd "$repository" && export GIT_INDEX_FILE=$index && git add -A && git write-tree)
    rm -f "$index"
    if ! git -C "$repository" diff --quiet HEAD "$tree"; then
        git -C "$repository" diff --binary HEAD "$tree" | git -C "$to" apply --index
        echo "fresh_root: the clone has what is not committed, too"
    fi
}

if [[ ${1:-} == --enter ]]; then
    enter "${@:2}"
fi

# value_of OPTION VALUE WHAT: the value, which is to be there and no option itself; WHAT says what it stands for.
value_of() {
    [[ -n ${2:-} && $2 != -* ]] || fail "$1: expected $3 behind it${2:+, found '$2'}"
    echo "$2"
}
# The same for the name of a root, which is a folder that is removed some day.
name_of_root() {
    local value
    value=$(value_of "$1" "${2:-}" "the name of a root") || exit
    [[ $value != */* ]] || fail "$1: expected a name without /, found '$value'"
    echo "$value"
}

name='' user=root folder=sluice depth='' check='' release='' distribution='' # of the release, empty for this machine's
export FRESH_ROOT_TOOLKIT='' FRESH_ROOT_HIDE=''
while [[ ${1:-} == --* ]]; do
    case $1 in
    --root)
        name=$(name_of_root "$1" "${2:-}")
        shift
        ;;
    --toolkit) FRESH_ROOT_TOOLKIT=$(toolkit) ;;
    --hide)
        FRESH_ROOT_HIDE+=${FRESH_ROOT_HIDE:+$'\n'}$(value_of "$1" "${2:-}" "a pattern")
        shift
        ;;
    --user) user=stranger ;;
    --folder)
        folder=$(value_of "$1" "${2:-}" "a name")
        shift
        ;;
    --shallow) depth='--depth 1' ;;
    --release)
        release=$(value_of "$1" "${2:-}" "the code name of a release")
        [[ $release =~ ^[a-z]+$ ]] || fail "--release: expected a code name such as trixie, found '$release'"
        shift
        ;;
    --check) check=yes ;;
    --remove)
        name=$(name_of_root "$1" "${2:-}")
        rm -rf --one-file-system "$roots/root.$name"
        exit
        ;;
    *) fail "'$1' is no option; expected --root, --toolkit, --hide, --user, --folder, --shallow, --release, --check or --remove" ;;
    esac
    shift
done
[[ $# -gt 0 || -n $check ]] || fail "expected a command to run, for example: tests/fresh_root.sh bash cmake/bootstrap.sh test"
[[ -z $FRESH_ROOT_HIDE || -n $FRESH_ROOT_TOOLKIT ]] || fail "--hide: expected --toolkit, whose files it leaves out"

make_archive
if [[ -n $check ]]; then exit; fi
if [[ -n $name ]]; then
    root=$roots/root.$name
else
    root=$(mktemp -d "$roots/root.XXXXXX")
    trap 'rm -rf --one-file-system "$root"' EXIT
    trap 'exit 130' INT TERM
fi
if [[ ! -d $root/etc ]]; then
    mkdir -p "$root"
    tar -C "$root" -xf "$archive"
    chmod 755 "$root"
fi
home=/root
if [[ $user != root ]]; then home=/home/$user; fi
if [[ ! -d $root$home/$folder ]]; then
    clone "$root$home/$folder" "$depth"
    if [[ $user != root ]]; then in_root "$root" root / chown -R "$user:" "$home/$folder"; fi
fi
in_root "$root" "$user" "$home/$folder" "$@"
