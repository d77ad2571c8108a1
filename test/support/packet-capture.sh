#!/bin/sh
# Runs a command in a network of its own and keeps every packet that goes over its loopback.
# Arguments: file for the packets; then the command.
set -e
file=$1
shift
ip link set lo up
# A slot of the buffer is as large as the largest packet kept: no request is near 2 KiB, and so there are 32,000 slots.
tcpdump -i lo -s 2048 -B 65536 -U --immediate-mode -Z root -w "$file" 2>"$file.log" &
tcpdump=$!
until grep -q listening "$file.log"; do
  kill -0 $tcpdump
  sleep 0.05
done
status=0
"$@" || status=$?
kill -INT $tcpdump
wait $tcpdump || true
grep -q "^0 packets dropped by kernel" "$file.log" || { cat "$file.log" >&2; exit 70; }
exit $status
