# shellcheck shell=bash
# Makes the workspace and the environment in it, as far as they are missing. setup_env.sh runs it:
#
#     bash install.sh FILE [--here]    FILE: the name of setup_env.sh, as it was typed
#
# Ended at any moment, it leaves nothing that could be taken for an environment, and the next
# time begins anew, with what was already downloaded.
started_in=$PWD
setup_file=$1
option=${2:-}
# shellcheck source=check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"
trap 'say "Interrupted. Type the same again: what was downloaded is kept."; exit 130' INT TERM HUP

ask_on_login_node() {
    local answer=""
    # A machine without Slurm is no cluster, and a shell with a job number is in a job.
    command -v srun >/dev/null && [ -z "${SLURM_JOB_ID:-}" ] && [ "$option" != --here ] || return 0
    say "There is no environment yet, and this is a login node, which everybody shares. Installing"
    say "is real work and belongs into a job. Start one, and source $setup_file again in it:"
    say "srun --account=$ACCOUNT --nodes=1 --ntasks=1 --cpus-per-task=4 --mem-per-cpu=2G" \
        "--gres=gpu:1 --time=00:45:00 --pty bash -l"
    [ -t 0 ] || fail "To install here all the same: source $setup_file --here"
    read -r -p "Install here all the same? [y/N] " answer
    [[ $answer == [yY]* ]] || exit 1
}

make_workspace() {
    local answer default
    default=$(dirname "$folder")/workspace
    if command -v ws_allocate >/dev/null; then
        answer=$(ws_allocate -F "$FILESYSTEM" "$WORKSPACE" "$WORKSPACE_DAYS" 2>&1)
        workspace=$(grep '^/' <<<"$answer" | tail -n 1)
        [ -d "$workspace" ] ||
            fail "No workspace could be allocated ($(head -n 1 <<<"$answer"))." \
                "To see which filesystems there are, type: ws_list -l"
    else
        say "This machine has no workspaces. A folder is needed for the environment, the caches" \
            "and the data (several GB)."
        [ ! -t 0 ] || read -r -p "Which one? [$default] " workspace
        workspace=${workspace:-$default}
        workspace=${workspace/#\~/${HOME:-}}
        [[ $workspace == /* ]] || workspace=$started_in/$workspace
        mkdir -p "$workspace" 2>/dev/null && [ -w "$workspace" ] ||
            fail "The folder $workspace cannot be written. Type the same again in a terminal, and" \
                "name another one."
    fi
}

remember_workspace() {
    [ "$(cat "$memory" 2>/dev/null)" != "$workspace" ] || return 0
    { printf '%s\n' "$workspace" >"$memory"; } 2>/dev/null || command -v ws_find >/dev/null ||
        fail "The file $memory cannot be written. Is your home full? To see what is big, type:" \
            "du -h --max-depth=1 ~ | sort -h"
}

warn_of_expiry() {
    local days
    command -v ws_list >/dev/null || return 0
    days=$(ws_list 2>/dev/null | awk -v folder="$workspace" '
        /workspace directory/ { sub(/^[^:]*: */, ""); mine = ($0 == folder) }
        mine && /remaining time/ { print ($4 == "expired" ? 0 : int($4)); exit }')
    [ "${days:-99}" -ge 14 ] || say "Your workspace expires in $days days, with all that is in" \
        "it. To keep it, type: ws_extend -F $FILESYSTEM $WORKSPACE $WORKSPACE_DAYS"
}

# Holds until this shell and the pip that it started have ended, however they end.
lock_environment() {
    { exec 9>"$workspace/.install.lock"; } 2>/dev/null || explain
    flock --nonblock 9 2>/dev/null
    case $? in
        0) return ;;
        1) say "Another shell of yours is installing. This one waits; Ctrl+C ends the waiting." ;;
        *) lock_with_folder; return ;;
    esac
    flock 9
}

# For filesystems that do not know flock. The holder touches the folder every 5 seconds; one that
# was not touched for a minute is left over from a shell that was killed.
lock_with_folder() {
    local lock=$workspace/.install.lock.d
    until mkdir "$lock" 2>/dev/null; do
        [ -d "$lock" ] || explain
        [ -z "$(find "$lock" -maxdepth 0 -mmin +1)" ] || rmdir "$lock" 2>/dev/null
        sleep 1
    done
    while kill -0 $$ && touch -c "$lock"; do sleep 5; done >/dev/null 2>&1 9>&- &
    # shellcheck disable=SC2064  # the value of now: the function's variable ends with it
    trap "rmdir '$lock'" EXIT
}

# Ends with the reason why something did not work: no space, no network, or the log's last words.
explain() {
    if ! head -c 1000000 /dev/zero 2>/dev/null >"$workspace/.space" ||
        grep -qsE "No space left|quota exceeded" "$log"; then
        rm -f "$workspace/.space"
        fail "There is no space left for $workspace, or it is read-only. To see what is big in" \
            "it, type: du -h --max-depth=2 '$workspace' | sort -h"
    fi
    rm -f "$workspace/.space"
    # "versions: none": pip saw not one version, so it saw no server either.
    if grep -qsE "Max retries|Connection|Timeout|ProxyError|versions: none" "$log"; then
        fail "The packages cannot be downloaded: no network here. Type the same again in a while," \
            "or, on the login node: source $setup_file --here"
    fi
    fail "Installing failed: $(grep -i error "$log" 2>/dev/null | tail -n 1)." \
        "Type the same again. If it fails again, show your instructor the file $log"
}

# Of the settings of pip in your shell, those that say where packages come from are kept. Another
# target, --user, or an extra index (the two builds of torch would mix) must not come in.
clean_pip_settings() {
    local name
    for name in $(compgen -e PIP_); do
        case $name in
            PIP_INDEX_URL | PIP_FIND_LINKS | PIP_NO_INDEX | PIP_TRUSTED_HOST | PIP_CONFIG_FILE) ;;
            PIP_CERT | PIP_CLIENT_CERT | PIP_PROXY | PIP_TIMEOUT | PIP_DEFAULT_TIMEOUT) ;;
            PIP_RETRIES) ;;
            *) unset "$name" ;;
        esac
    done
    export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
    # The downloads, and the GBs that unpacking needs for a while: in the workspace there is room.
    export PIP_CACHE_DIR=$workspace/.cache/pip TMPDIR=$workspace/.cache/tmp
    rm -rf "$TMPDIR"
    mkdir -p "$TMPDIR" 2>>"$log" || explain
}

# pip's progress is shown. Its complaints go to the log: they would bury our own sentence.
run_pip() {
    "$workspace/venv/bin/python" -I -u -m pip install --no-input --progress-bar=off \
        "$@" 2>>"$log" || explain
}

check_torch() {
    local found
    found=$("$workspace/venv/bin/python" -I -c \
        'import torch; print("cuda" if torch.version.cuda else "cpu")' 2>>"$log") || explain
    [ "$found" = "$TORCH_BUILD" ] ||
        fail "This should be the $TORCH_BUILD build of torch, but pip found" \
            "the $found build. Ask your instructor for TORCH_INDEX in course.env."
}

build_environment() {
    local version mark=$workspace/venv/lab-environment
    { : >"$log"; } 2>/dev/null || explain
    version=$(python_version python3) || version=none
    [[ $version =~ ^3\.[1-9][0-9]$ ]] || fail "Python 3.10 or newer is needed, and here is" \
        "$version. To see which modules there are, type: module spider Python"
    say "Installing. This takes a few minutes, most of them for torch, which is big."
    # Always into an empty one: a package that pip was killed in looks to pip like a whole one.
    rm -f "$mark" 2>>"$log" || explain
    python3 -I -m venv --clear "$workspace/venv" >>"$log" 2>&1 || explain
    clean_pip_settings
    [ -z "$TORCH_INDEX" ] ||
        run_pip --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.txt)"
    run_pip --requirement requirements.txt
    check_torch
    # The data of lab 04.
    mkdir -p "$workspace/data" 2>>"$log" || explain
    cp ../04_tinygpt/shakespeare.txt "$workspace/data/" 2>>"$log" || explain
    rm -rf "$TMPDIR"
    { wanted && echo "python $version"; } 2>>"$log" >"$mark.part" || explain
    mv "$mark.part" "$mark" 2>>"$log" || explain
}

find_workspace
if ! is_whole; then
    ask_on_login_node
    [ -n "$workspace" ] || make_workspace
fi
echo "workspace : $workspace"
remember_workspace
warn_of_expiry
log=$workspace/install.log
if ! is_whole; then
    lock_environment
    # The shell that was waited for may have done it.
    is_whole || build_environment
fi
check_python
