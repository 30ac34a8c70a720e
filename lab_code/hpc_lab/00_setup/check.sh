# shellcheck shell=bash
# Looks where the workspace is and whether the environment in it is whole:
#
#     bash check.sh modules        prints the modules that course.env names
#     bash check.sh environment    prints the workspace, if the environment in it is whole
#
# modules.sh and activate.sh run it, install.sh sources it for its functions. What is wrong is
# said on stderr, in a sentence with what to type next, and the exit code is 1.
set -uo pipefail

say() { printf '%s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

# A CDPATH makes cd print, and the other two can break every Python that is started here.
unset CDPATH PYTHONPATH PYTHONHOME
# A shell that was started with an empty environment has a PATH, but keeps it to itself.
export PATH
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
folder=$PWD
# The last workspace: the one to use where ws_find is missing, and how an expired one is noticed.
memory=$folder/.workspace

read_course_values() {
    local bad key
    bad=$(grep -l $'\r' -- *.sh *.env *.txt | head -n 1)
    [ -z "$bad" ] || fail "$bad has Windows line ends. Type: sed -i 's/\\r\$//' '$folder/$bad'"
    bad=$(grep -nEv "^(#.*)?$|^[A-Z_]+=('[^']*'|[A-Za-z0-9._/:-]*)$" course.env | head -n 1)
    [ -z "$bad" ] || fail "$folder/course.env, line ${bad%%:*}: this must be KEY=value, without" \
        "spaces around the =, and with single quotes around a value that has spaces."
    # shellcheck source=course.env
    source ./course.env
    for key in ACCOUNT FILESYSTEM WORKSPACE WORKSPACE_DAYS MODULES TORCH_BUILD TORCH_INDEX; do
        [ -n "${!key+set}" ] || fail "$folder/course.env has no line $key=. Copy the file again."
    done
    [[ $TORCH_BUILD == cuda || $TORCH_BUILD == cpu ]] ||
        fail "$folder/course.env: TORCH_BUILD must be cuda or cpu."
}

# Sets workspace to its folder, or to nothing when there is none yet.
find_workspace() {
    local remembered=""
    [ -f "$memory" ] && remembered=$(<"$memory")
    workspace=$remembered
    if command -v ws_find >/dev/null; then
        workspace=$(ws_find -F "$FILESYSTEM" "$WORKSPACE" 2>/dev/null)
        [ -n "$workspace" ] || [[ $remembered != *"-$WORKSPACE" ]] ||
            fail "Your workspace $WORKSPACE has expired. For 30 days its files can be restored" \
                "(ws_restore --list). For an empty one, type:" \
                "ws_allocate -F $FILESYSTEM $WORKSPACE $WORKSPACE_DAYS"
        [ -z "$workspace" ] || [ -d "$workspace" ] ||
            fail "The folder $workspace is gone. For a new one, type:" \
                "ws_release -F $FILESYSTEM $WORKSPACE &&" \
                "ws_allocate -F $FILESYSTEM $WORKSPACE $WORKSPACE_DAYS"
    fi
    [ -z "$workspace" ] || [ -d "$workspace" ] ||
        fail "The folder $workspace is gone. For an empty one, type: mkdir -p '$workspace'"
}

# What the environment's mark must say. It is written last: a half-made environment has none.
wanted() {
    printf 'packages %s\ntorch %s\n' "$(sha256sum <requirements.txt)" "$TORCH_BUILD"
}

is_whole() {
    local mark=$workspace/venv/lab-environment
    [ -n "$workspace" ] && [ -f "$mark" ] && [ "$(head -n 2 "$mark")" = "$(wanted)" ]
}

python_version() {
    "$1" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

check_python() {
    local made_with now
    made_with=$(sed -n 's/^python //p' "$workspace/venv/lab-environment")
    now=$(python_version "$workspace/venv/bin/python") || now="none that starts"
    [ "$made_with" = "$now" ] ||
        fail "The environment was made with Python $made_with, and now there is $now. To make it" \
            "anew, type: rm -rf '$workspace/venv'; source '$folder/setup_env.sh'"
}

read_course_values
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    case ${1:-} in
        modules) printf '%s\n' "$MODULES" ;;
        environment)
            find_workspace
            is_whole || fail "The environment of the lab is missing or not complete." \
                "On the login node, type: source '$folder/setup_env.sh'"
            check_python
            printf '%s\n' "$workspace"
            ;;
    esac
fi
