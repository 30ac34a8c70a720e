# shellcheck shell=bash
# Sourced by the commands in this folder: it goes to the top of the checkout and
# offers the two functions that set up what a command needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH="$PWD/scripts" NO_MKDOCS_2_WARNING=1

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# need_packages PACKAGE...: Debian packages, installed where they are missing and where we may.
need_packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null \
            | grep --quiet '^installed$' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo --non-interactive true 2>/dev/null \
            || fail "Missing: ${missing[*]}. Install it and start again: sudo apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "Installing Debian packages: ${missing[*]}"
    "${as_root[@]}" apt-get update --quiet=2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes \
        --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
}

# need_python EXTRA...: the virtual environment .venv with these extras of pyproject.toml. What is
# in locks/ is installed as it is there, and refused if its digest differs.
# A stamp for each extra tells what is there, so that later runs need no network.
need_python() {
    local extra source wanted locked=() open=() stamps=()
    python3 -c 'import ensurepip' 2>/dev/null || need_packages python3 python3-venv
    [ -x .venv/bin/python ] || { say "Making the virtual environment .venv"; python3 -m venv .venv; }
    for extra in "$@"; do
        source=pyproject.toml
        [ ! -f "locks/$extra.txt" ] || source=locks/$extra.txt
        wanted=$(sha256sum "$source" | cut -d' ' -f1)
        [ "$(cat ".venv/installed-$extra" 2>/dev/null)" != "$wanted" ] || continue
        if [ "$source" = pyproject.toml ]; then open+=("$extra"); else locked+=(--requirement "$source"); fi
        stamps+=("$extra $wanted")
    done
    if [ ${#stamps[@]} -gt 0 ]; then
        say "Installing into .venv: ${stamps[*]%% *}"
        [ ${#locked[@]} -eq 0 ] || .venv/bin/python -m pip install --quiet --require-hashes "${locked[@]}"
        [ ${#open[@]} -eq 0 ] || (IFS=, && .venv/bin/python -m pip install --quiet --editable ".[${open[*]}]")
        for extra in "${stamps[@]}"; do echo "${extra#* }" >".venv/installed-${extra%% *}"; done
    fi
    export PATH="$PWD/.venv/bin:$PATH"
}
