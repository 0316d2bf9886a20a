# The commands of a cloud-config that are one line of plain text each, as "run TEXT", and what else stands in their list as "skip TEXT".
NR == 1 && !/^#cloud-config/ { print "skip user-data: it is no cloud-config"; exit }
{ sub(/\r$/, "") }
/^[ \t]*(#.*)?$/ { next }
/^runcmd:[ \t]*$/ { within = 1; depth = -1; next }
/^[^ \t-]/ { within = 0 }
!within { next }
{
	match($0, /^[ \t]*/)
	if (depth < 0) depth = RLENGTH
	item = (RLENGTH == depth) && sub(/^[ \t]*-[ \t]+/, "")
	plain = item && !/^[][{}|>&*!%@`"',?-]/
	sub(/^[ \t]+/, "")
	print (plain ? "run " : "skip ") $0
}
