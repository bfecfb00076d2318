#!/usr/bin/env bash
# The control plane's network, in a namespace of its own: what it is, and then nothing but its holder.
#
#   plane.sh
#
# The management network is br0, on which the API server is 10.99.0.1 and every node has an address; it also routes
# between the nodes' pods. traffic-1 and traffic-2 are plain wires that nodes have a card each on: whatever addresses are
# there, Berth put there. The ClusterIP of the Service "kubernetes" stands on the loopback, so that no kube-proxy is needed.
#
# A bridge whose hardware address nobody has set takes the lowest of its ports': with each node that came or went the API server
# would be out of the others' reach until they ask who has its address, half a minute later.
set -euo pipefail
ip link set lo up
ip address add 10.0.0.1/32 dev lo
for wire in br0 traffic-1 traffic-2; do
    ip link add "$wire" type bridge
    ip link set "$wire" up
done
ip link set br0 address 02:00:00:ff:00:00
ip address add 10.99.0.1/24 dev br0
echo 1 >/proc/sys/net/ipv4/ip_forward
exec sleep infinity
