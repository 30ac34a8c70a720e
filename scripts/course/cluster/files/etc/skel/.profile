# Read at login, after /etc/profile.
[ -z "${PS1-}" ] || . ~/.bashrc
