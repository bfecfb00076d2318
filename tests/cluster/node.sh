#!/usr/bin/env bash
# The first process of a node, in namespaces of its own (network, mount, pid, uts, ipc): killing it is a power cut.
#
#   node.sh FOLDER NAME ADDRESS PODS GROUP
#
# FOLDER/disks/NAME is its disk, with /etc, /var and /usr/local; what else it has is gone with it. GROUP is its part of every
# control group hierarchy. Its cards eth0, eth1 and eth2 are put into its namespace from outside. It runs the units that are
# ordered before the kubelet, starts containerd, takes in the images of FOLDER/images, notes in FOLDER/NAME.before-kubelet
# which addresses there are and which containers run, starts the kubelet, and then does what FOLDER/disks/NAME/commands says:
# "kubelet" starts one.
# The programs' places are in the environment: RUNTIME, PLUGINS, KUBELET.
set -euo pipefail
folder=$1 name=$2 address=$3 pods=$4 group=$5
disk=$folder/disks/$name
socket=/run/containerd/containerd.sock
export PATH=$RUNTIME:$PATH

# Of the machine's /etc only what programs need to know users and find libraries.
first_boot() {
    mkdir -p "$disk"/{etc/systemd/system,var/lib,var/log,var/tmp,local/bin,cni}
    ln -s /run "$disk/var/run"
    cp /etc/{passwd,group,nsswitch.conf,ld.so.cache} "$disk/etc"
    echo "$name" >"$disk/etc/hostname"
    printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >"$disk/etc/hosts"
    : >"$disk/etc/resolv.conf"
    printf '%s' "$folder/$name" | md5sum | cut -d ' ' -f 1 >"$disk/etc/machine-id"
}

mounts() {
    mount --make-rshared /
    mount --bind "$disk/etc" /etc
    mount --bind "$disk/var" /var
    mount --bind "$disk/local" /usr/local
    mount -t tmpfs run /run
    mount -t tmpfs opt /opt
    mkdir -p /run/lock /run/sysctl
    # The kubelet sets these for the whole machine: it gets copies.
    local file copy
    for file in /proc/sys/{vm/overcommit_memory,vm/panic_on_oom,kernel/panic,kernel/panic_on_oops,kernel/keys/root_maxkeys,kernel/keys/root_maxbytes}; do
        copy=/run/sysctl/${file//\//.}
        cat "$file" >"$copy"
        mount --bind "$copy" "$file"
    done
}

# As after a boot: empty. What is still there belongs to processes of the last one, whose end may take a moment.
control_groups() {
    local hierarchy hierarchies=(/sys/fs/cgroup/{cpu,cpuacct,cpuset,memory,devices,freezer,blkio,pids,systemd})
    # Version 2 has one hierarchy for all, where a group has the controllers that the one above it gives.
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        hierarchies=(/sys/fs/cgroup)
        sed 's/[^ ]*/+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
    fi
    for hierarchy in "${hierarchies[@]}"; do
        while [ -d "$hierarchy/$group" ] && ! find "$hierarchy/$group" -depth -type d -exec rmdir {} + 2>/dev/null; do
            sleep 0.05
        done
        mkdir "$hierarchy/$group"
    done
    [ -d /sys/fs/cgroup/cpuset ] || return 0
    for file in cpuset.cpus cpuset.mems; do
        cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$group/$file"
    done
}

network() {
    local card
    ip link set lo up
    for card in eth0 eth1 eth2; do
        until ip link show "$card" >/dev/null 2>&1; do sleep 0.05; done
    done
    ip address add "$address/24" dev eth0
    ip link set eth0 up
    ip route add default via 10.99.0.1
    echo 1 >/proc/sys/net/ipv4/ip_forward
}

settings() {
    cat >"$disk/cni/10-pods.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
 "ipam": {"type": "host-local", "subnet": "$pods", "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
    # restrict_oom_score_adj: without it a sandbox fails where this process may not lower the score.
    cat >"$disk/containerd.toml" <<TOML
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$PLUGINS"
    conf_dir = "$disk/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
TOML
    cat >"$disk/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$socket
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$group
failSwapOn: false
makeIPTablesUtilChains: false
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $folder/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $folder/pki/kubelet-$name.crt
tlsPrivateKeyFile: $folder/pki/kubelet-$name.key
# What this machine's disk is filled with is not these nodes' business.
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 5s
# Renewed after a quarter of it.
nodeLeaseDurationSeconds: 12
clusterDNS: [10.0.0.10]
resolvConf: ""
YAML
}

# Services that are enabled and ordered before the kubelet have run when it starts, whatever came of them: as systemd does it,
# with the capabilities that a unit leaves and the folders that it asks for.
units_before_kubelet() {
    local unit command bounds
    for unit in /etc/systemd/system/multi-user.target.wants/*.service; do
        grep --quiet --extended-regexp '^Before=(.* )?kubelet\.service( |$)' "$unit" 2>/dev/null || continue
        command=$(sed -n 's/^ExecStart=//p' "$unit")
        bounds=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ /,/g')
        mkdir -p $(sed -n 's|^RuntimeDirectory=|/run/|p; s|^StateDirectory=|/var/lib/|p' "$unit")
        # In words, as systemd takes it apart.
        # shellcheck disable=SC2086
        setpriv --no-new-privs --bounding-set="-all,$bounds" -- $command >>"$folder/units-$name.log" 2>&1 || true
    done
}

kubelet() {
    "$KUBELET" --config="$disk/kubelet.yaml" --kubeconfig="$folder/pki/node-$name.kubeconfig" \
        --hostname-override="$name" --node-ip="$address" --root-dir=/var/lib/kubelet >>"$folder/kubelet-$name.log" 2>&1 &
}

hostname "$name"
[ -d "$disk/etc" ] || first_boot
control_groups
mounts
network
settings
units_before_kubelet
containerd --config "$disk/containerd.toml" >>"$folder/containerd-$name.log" 2>&1 &
until ctr --address "$socket" version >/dev/null 2>&1; do sleep 0.05; done
for image in "$folder"/images/*.tar; do
    ctr --address "$socket" --namespace k8s.io images import "$image"
done
{
    ip -brief -4 address
    ctr --address "$socket" --namespace k8s.io tasks list
} >"$folder/$name.noted"
mv "$folder/$name.noted" "$folder/$name.before-kubelet"
kubelet
# From here on nothing that goes wrong ends the machine.
set +e
rm -f "$disk/commands"
mkfifo "$disk/commands"
# Open for writing too, so that it never ends.
exec 3<>"$disk/commands"
while read -r command <&3; do
    [ "$command" != kubelet ] || kubelet
done
