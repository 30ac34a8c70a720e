# Read by every interactive shell on the practice cluster. The prompts are those of ZIH.
case "$HOSTNAME" in
    @LOGIN_HOST@) PS1='\u@@LOGIN_HOST@\$ ' ;;
    *) PS1='\u@@CLUSTER@\$ ' ;;
esac
. /etc/module.sh
