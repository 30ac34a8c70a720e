# Read by every interactive shell.
alias ls='ls --color=auto'
