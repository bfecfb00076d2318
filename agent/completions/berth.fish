# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_berth_global_optspecs
    string join \n h/help V/version
end

function __fish_berth_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_berth_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_berth_using_subcommand
    set -l cmd (__fish_berth_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c berth -n "__fish_berth_needs_command" -s h -l help -d 'Print help'
complete -c berth -n "__fish_berth_needs_command" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_needs_command" -f -a "show" -d 'Print the network state of this host'
complete -c berth -n "__fish_berth_needs_command" -f -a "apply" -d 'Bring about a desired state on this host, or leave it as it was'
complete -c berth -n "__fish_berth_needs_command" -f -a "plan" -d 'Print what would be done to a host so that a document holds'
complete -c berth -n "__fish_berth_needs_command" -f -a "render" -d 'Print a policy\'s desired state as one node would get it'
complete -c berth -n "__fish_berth_needs_command" -f -a "pool" -d 'Tools about pools'
complete -c berth -n "__fish_berth_needs_command" -f -a "policy" -d 'Tools about policies'
complete -c berth -n "__fish_berth_needs_command" -f -a "node" -d 'Tools about nodes'
complete -c berth -n "__fish_berth_needs_command" -f -a "crds" -d 'Print the CustomResourceDefinitions as YAML'
complete -c berth -n "__fish_berth_needs_command" -f -a "serve" -d 'Serve the Kubernetes API where there is no cluster'
complete -c berth -n "__fish_berth_needs_command" -f -a "controller" -d 'Serve claims, take back what nobody holds, lead rollouts'
complete -c berth -n "__fish_berth_needs_command" -f -a "agent" -d 'Give this host its addresses, and keep its network as its policies say'
complete -c berth -n "__fish_berth_needs_command" -f -a "boot" -d 'Put back what this host\'s journal says it holds, once, without the API, and end'
complete -c berth -n "__fish_berth_needs_command" -f -a "demo" -d 'Show it all on this machine: three hosts, two pools, one policy, and what may happen to them'
complete -c berth -n "__fish_berth_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c berth -n "__fish_berth_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand show" -l netns -d 'Work in this network namespace: a name of \'ip netns\', or a path such as /proc/123/ns/net' -r
complete -c berth -n "__fish_berth_using_subcommand show" -l state-dir -d 'Where the checkpoint is kept while a change is under way' -r -F
complete -c berth -n "__fish_berth_using_subcommand show" -s o -l output -d 'The form of the answer' -r -f -a "yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand show" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand apply" -s f -l file -d 'The desired state: a bare document, a NodeNetworkConfigurationPolicy without captures, or an enactment' -r -F
complete -c berth -n "__fish_berth_using_subcommand apply" -l netns -d 'Work in this network namespace: a name of \'ip netns\', or a path such as /proc/123/ns/net' -r
complete -c berth -n "__fish_berth_using_subcommand apply" -l state-dir -d 'Where the checkpoint is kept while a change is under way' -r -F
complete -c berth -n "__fish_berth_using_subcommand apply" -l timeout -d 'How many seconds the result may take to show before everything is put back' -r
complete -c berth -n "__fish_berth_using_subcommand apply" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand apply" -l dry-run -d 'Print the plan and change nothing'
complete -c berth -n "__fish_berth_using_subcommand apply" -l no-verify -d 'Don\'t look afterwards if the result is what was asked for'
complete -c berth -n "__fish_berth_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand apply" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand plan" -s f -l file -d 'The desired state: a bare document, a NodeNetworkConfigurationPolicy without captures, or an enactment' -r -F
complete -c berth -n "__fish_berth_using_subcommand plan" -l current -d 'What the host has: a bare document or a NodeNetworkState. Default: this host, as it is now' -r -F
complete -c berth -n "__fish_berth_using_subcommand plan" -l netns -d 'Work in this network namespace: a name of \'ip netns\', or a path such as /proc/123/ns/net' -r
complete -c berth -n "__fish_berth_using_subcommand plan" -l state-dir -d 'Where the checkpoint is kept while a change is under way' -r -F
complete -c berth -n "__fish_berth_using_subcommand plan" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand plan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand plan" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand render" -s f -l file -d 'A NodeNetworkConfigurationPolicy, or a bare document of capture and desiredState; pools may stand in the same file' -r -F
complete -c berth -n "__fish_berth_using_subcommand render" -l current -d 'What the host has: a bare document or a NodeNetworkState; only needed by captures that look at it' -r -F
complete -c berth -n "__fish_berth_using_subcommand render" -l captured -d 'What captures found before: an enactment, or its capturedStates (which say nothing of a pool\'s addresses)' -r -F
complete -c berth -n "__fish_berth_using_subcommand render" -l pool -d 'NodeIPPools, with who holds what in their status; and NodeIPSlices' -r -F
complete -c berth -n "__fish_berth_using_subcommand render" -l node -d 'The node to render for; needed by captures that ask a pool' -r
complete -c berth -n "__fish_berth_using_subcommand render" -l node-labels -d 'The node\'s labels, for ranges with a nodeSelector' -r
complete -c berth -n "__fish_berth_using_subcommand render" -s o -l output -d 'The form of the answer' -r -f -a "yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand render" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand render" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "ls" -d 'List pools: how they are, how much they have, and how much is left'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "show" -d 'Draw a pool as a map of its addresses, and list who holds them'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "explain" -d 'Print what each offset and address of a pool is, and who holds it'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "verify" -d 'Compare a pool\'s ledger with the enactments, and with what is on interfaces'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "release" -d 'Take an address from a holder that is gone'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "hold" -d 'Stop pools from giving addresses, before a store is restored'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "resume" -d 'Let pools that are on hold give addresses again'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "history" -d 'Print what happened to a pool, or to one of its addresses'
complete -c berth -n "__fish_berth_using_subcommand pool; and not __fish_seen_subcommand_from ls show explain verify release hold resume history help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from ls" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -s f -l file -d 'NodeIPPools, and NodeIPSlices of theirs, in a file instead of the API' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -l limit -d 'At most so many holders in a table, 0 for all of them' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -s f -l file -d 'NodeIPPools, and NodeIPSlices of theirs, in a file instead of the API' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l offset -d 'Only the address at this offset' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l ip -d 'Only this address' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l range -d 'Only this range' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l limit -d 'At most so many rows of a pool, 0 for all of them; default: 40 in a table, else all' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from explain" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l node -d 'With --host: the name of this host\'s Node; default: its hostname' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l netns -d 'Work in this network namespace: a name of \'ip netns\', or a path such as /proc/123/ns/net' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l state-dir -d 'Where the checkpoint is kept while a change is under way' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l live -d 'Also compare with the interfaces that every host\'s NodeNetworkState shows'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -l host -d 'Also compare with the interfaces of this host, as its kernel has them'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from verify" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -s y -l yes -d 'Don\'t ask'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from release" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -l reason -d 'Why, for whoever looks at the pool later' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -l all -d 'All pools'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from hold" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -l all -d 'All pools'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from resume" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -l limit -d 'At most so many lines of a table, the latest; 0 for all' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from history" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "ls" -d 'List pools: how they are, how much they have, and how much is left'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "show" -d 'Draw a pool as a map of its addresses, and list who holds them'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Print what each offset and address of a pool is, and who holds it'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Compare a pool\'s ledger with the enactments, and with what is on interfaces'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "release" -d 'Take an address from a holder that is gone'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "hold" -d 'Stop pools from giving addresses, before a store is restored'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "resume" -d 'Let pools that are on hold give addresses again'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "history" -d 'Print what happened to a pool, or to one of its addresses'
complete -c berth -n "__fish_berth_using_subcommand pool; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -f -a "preview" -d 'Print which node would get which address by a policy, and why'
complete -c berth -n "__fish_berth_using_subcommand policy; and not __fish_seen_subcommand_from preview help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -s f -l file -d 'A NodeNetworkConfigurationPolicy; pools that are yet to be created may stand in the same file' -r -F
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from preview" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "preview" -d 'Print which node would get which address by a policy, and why'
complete -c berth -n "__fish_berth_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -f -a "ls" -d 'List nodes with the addresses that they have of pools'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -f -a "show" -d 'Print one node: the addresses that it has of pools, what its host shows, and how its policies stand'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -f -a "rm" -d 'Retire a host that has no kubelet: delete its Node'
complete -c berth -n "__fish_berth_using_subcommand node; and not __fish_seen_subcommand_from ls show rm help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from ls" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -s o -l output -d 'The form of the answer' -r -f -a "table\t''
wide\t'A table with more columns'
yaml\t''
json\t''"
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, the pod\'s service account, or the socket of a \'berth serve\'' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -l context -d 'The context of the kubeconfig to use, in place of its current one' -r
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -l socket -d 'The unix socket of a \'berth serve\' on this host, in place of a kubeconfig' -r -F
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -s y -l yes -d 'Don\'t ask'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -l force -d 'Also a Node that a kubelet keeps'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from rm" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "ls" -d 'List nodes with the addresses that they have of pools'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print one node: the addresses that it has of pools, what its host shows, and how its policies stand'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "rm" -d 'Retire a host that has no kubelet: delete its Node'
complete -c berth -n "__fish_berth_using_subcommand node; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand crds" -l name -d 'Only the definition of this kind, by its name in manifests' -r
complete -c berth -n "__fish_berth_using_subcommand crds" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand crds" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l state-dir -d 'Where everything is kept; made if it isn\'t there' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l listen -d 'Where to listen: unix:PATH, 127.0.0.1:PORT, or HOST:PORT with TLS; port 0 takes any free one' -r
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l tls-cert -d 'The server\'s certificate, in PEM' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l tls-key -d 'The key of that certificate, in PEM' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l client-ca -d 'Whose signature client certificates must have, in PEM' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l revoked -d 'Names whose certificates are refused though the CA signed them [default: `revoked` beside --client-ca, if it is there]' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l write-kubeconfig -d 'Write a kubeconfig of the first TCP address, once it listens' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l page-address -d 'Where to offer a page to look at pools and policies, over plain HTTP; \'none\' for nowhere' -r
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l in-memory -d 'Keep everything in memory: it is gone when the server stops'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -l agents-elect -d 'Agents elect a controller among themselves (\'berth agent --with-controller\'): every host may do what a controller may'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -f -a "pki" -d 'Make a CA, and certificates for the server, administrators, controllers and hosts'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -f -a "backup" -d 'Copy everything to a file, while the server runs'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -f -a "restore" -d 'Replace a store by a backup, while its server doesn\'t run'
complete -c berth -n "__fish_berth_using_subcommand serve; and not __fish_seen_subcommand_from pki backup restore help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -f -a "init" -d 'Make the CA, the server\'s certificate, and an administrator\'s with its kubeconfig'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -f -a "host" -d 'Make a host\'s certificate and kubeconfig'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -f -a "revoke" -d 'Refuse every certificate that was made for a name until now'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -f -a "controller" -d 'Make a controller\'s certificate and kubeconfig'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from pki" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from backup" -l socket -d 'The running server\'s unix socket' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from backup" -l state-dir -d 'Copy this store instead, whose server doesn\'t run' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from backup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from backup" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from restore" -l state-dir -d 'The store to replace' -r -F
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from restore" -l force -d 'Replace also a store that can\'t be read'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from restore" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "pki" -d 'Make a CA, and certificates for the server, administrators, controllers and hosts'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "backup" -d 'Copy everything to a file, while the server runs'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "restore" -d 'Replace a store by a backup, while its server doesn\'t run'
complete -c berth -n "__fish_berth_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand controller" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, or the pod\'s service account' -r -F
complete -c berth -n "__fish_berth_using_subcommand controller" -l namespace -d 'The namespace of the Lease' -r
complete -c berth -n "__fish_berth_using_subcommand controller" -l exclude-cidrs -d 'Networks that no pool gives of, such as those of pods; Service CIDRs that the API has are kept free by themselves' -r
complete -c berth -n "__fish_berth_using_subcommand controller" -l agent-nodes -d 'Labels of the nodes that are to have an agent, as \'kubectl get -l\' takes them; default: all that run Linux. Whether each has one is told by the metric berth_node_ready' -r
complete -c berth -n "__fish_berth_using_subcommand controller" -l ensure-pools -d 'Pools that are to be there: a file of NodeIPPools, or a directory of such files. One that is not there is made; one that says otherwise is told of and left as it is' -r -F
complete -c berth -n "__fish_berth_using_subcommand controller" -l page-address -d 'Where to offer a page to look at pools and policies, over plain HTTP; \'none\' for nowhere' -r
complete -c berth -n "__fish_berth_using_subcommand controller" -l config -d 'Settings from this YAML file: the names of these flags, without \'--\', as keys' -r -F
complete -c berth -n "__fish_berth_using_subcommand controller" -l health-address -d 'Where to answer /healthz, /readyz and /metrics, over plain HTTP; \'none\' for nowhere' -r
complete -c berth -n "__fish_berth_using_subcommand controller" -l log-level -d 'How much is said' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c berth -n "__fish_berth_using_subcommand controller" -l log-format -d 'For whom it is said' -r -f -a "human\t'Lines for people'
json\t'A JSON object a line: time, level, message'"
complete -c berth -n "__fish_berth_using_subcommand controller" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand controller" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand agent" -l kubeconfig -d 'How to reach the API; default: $KUBECONFIG, ~/.kube/config, or the pod\'s service account' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l node -d 'The name of this host\'s Node; with --standalone the hostname, if not given' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l standalone -d 'A host on its own: API and controller in this process, pools and policies from the manifests in this directory' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l with-controller -d 'Elect a controller among the agents that have this flag' -r -f -a "true\t''
false\t''"
complete -c berth -n "__fish_berth_using_subcommand agent" -l namespace -d 'The namespace of the controller\'s Lease' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l netns -d 'Work on this network namespace: a name of \'ip netns\', or a path' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l state-dir -d 'Where the journal is kept, and with --standalone the API\'s store' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l checkpoint-dir -d 'Where the checkpoint is kept while a change is under way: where \'berth apply\' keeps its own, so that each undoes what the other left' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l host-root -d 'In a container: where the host\'s /etc and /proc/sys/net are mounted, as DIR/etc and DIR/proc/sys/net' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l register-node -d 'Register this host\'s Node and keep it Ready: where there is no kubelet' -r -f -a "true\t''
false\t''"
complete -c berth -n "__fish_berth_using_subcommand agent" -l probes -d 'What must go on working when this host is changed, if it did before: gateway, dns, api, node, or none; a policy\'s annotation nmstate.io/probes says otherwise for that policy' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l probe-timeout -d 'How long what is silent after a change is waited for, before the change is undone' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l wire-probe -d 'How long the wire is asked whether somebody else has a pooled IPv4 address before it is used: 100ms, say, 2s, or off; a policy\'s annotation nmstate.io/wire-probe says otherwise for that policy' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l node-labels -d 'Labels of the Node that is registered' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l node-lock -d 'kubernetes-nmstate\'s lock, held so that its handler and this agent never both work on this host; \'none\' for no lock' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l exclude-cidrs -d 'Networks that no pool gives of, such as those of pods; Service CIDRs that the API has are kept free by themselves' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l agent-nodes -d 'Labels of the nodes that are to have an agent, as \'kubectl get -l\' takes them; default: all that run Linux. Whether each has one is told by the metric berth_node_ready of the one that leads' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l config -d 'Settings from this YAML file: the names of these flags, without \'--\', as keys' -r -F
complete -c berth -n "__fish_berth_using_subcommand agent" -l health-address -d 'Where to answer /healthz, /readyz and /metrics, over plain HTTP; \'none\' for nowhere' -r
complete -c berth -n "__fish_berth_using_subcommand agent" -l log-level -d 'How much is said' -r -f -a "error\t''
warn\t''
info\t''
debug\t''"
complete -c berth -n "__fish_berth_using_subcommand agent" -l log-format -d 'For whom it is said' -r -f -a "human\t'Lines for people'
json\t'A JSON object a line: time, level, message'"
complete -c berth -n "__fish_berth_using_subcommand agent" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand agent" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l state-dir -d 'Where the agent keeps its journal' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l checkpoint-dir -d 'Where the checkpoint is kept while a change is under way' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l netns -d 'Work on this network namespace: a name of \'ip netns\', or a path' -r
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l wait -d 'How many seconds cards that are not there yet are waited for' -r
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l wire-probe -d 'How long the wire is asked whether somebody else has an address, before it is used: 100ms, say, at most 10s; or off' -r
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -l node-lock -d 'kubernetes-nmstate\'s lock, held meanwhile; \'none\' for no lock' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -f -a "install" -d 'Have this host run \'berth boot\' at every boot, before its kubelet starts'
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -f -a "remove" -d 'Take off this host what \'berth boot install\' put there'
complete -c berth -n "__fish_berth_using_subcommand boot; and not __fish_seen_subcommand_from install remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from install" -l host-root -d 'In a container: where the host\'s /etc is mounted, as DIR/etc' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from install" -l state-dir -d 'In a container: where the host\'s /var/lib/berth is mounted' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from install" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from remove" -l host-root -d 'In a container: where the host\'s /etc is mounted, as DIR/etc' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from remove" -l state-dir -d 'In a container: where the host\'s /var/lib/berth is mounted' -r -F
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from remove" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from help" -f -a "install" -d 'Have this host run \'berth boot\' at every boot, before its kubelet starts'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Take off this host what \'berth boot install\' put there'
complete -c berth -n "__fish_berth_using_subcommand boot; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand demo" -l stay -d 'Leave hosts, API and controller up to try things on, until Ctrl-C'
complete -c berth -n "__fish_berth_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c berth -n "__fish_berth_using_subcommand demo" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand completions" -s h -l help -d 'Print help'
complete -c berth -n "__fish_berth_using_subcommand completions" -s V -l version -d 'Print version'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "show" -d 'Print the network state of this host'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "apply" -d 'Bring about a desired state on this host, or leave it as it was'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "plan" -d 'Print what would be done to a host so that a document holds'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "render" -d 'Print a policy\'s desired state as one node would get it'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "pool" -d 'Tools about pools'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "policy" -d 'Tools about policies'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "node" -d 'Tools about nodes'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "crds" -d 'Print the CustomResourceDefinitions as YAML'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "serve" -d 'Serve the Kubernetes API where there is no cluster'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "controller" -d 'Serve claims, take back what nobody holds, lead rollouts'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "agent" -d 'Give this host its addresses, and keep its network as its policies say'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "boot" -d 'Put back what this host\'s journal says it holds, once, without the API, and end'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "demo" -d 'Show it all on this machine: three hosts, two pools, one policy, and what may happen to them'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "completions" -d 'Print the completions of a shell'
complete -c berth -n "__fish_berth_using_subcommand help; and not __fish_seen_subcommand_from show apply plan render pool policy node crds serve controller agent boot demo completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "ls" -d 'List pools: how they are, how much they have, and how much is left'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "show" -d 'Draw a pool as a map of its addresses, and list who holds them'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "explain" -d 'Print what each offset and address of a pool is, and who holds it'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "verify" -d 'Compare a pool\'s ledger with the enactments, and with what is on interfaces'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "release" -d 'Take an address from a holder that is gone'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "hold" -d 'Stop pools from giving addresses, before a store is restored'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "resume" -d 'Let pools that are on hold give addresses again'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from pool" -f -a "history" -d 'Print what happened to a pool, or to one of its addresses'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "preview" -d 'Print which node would get which address by a policy, and why'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from node" -f -a "ls" -d 'List nodes with the addresses that they have of pools'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from node" -f -a "show" -d 'Print one node: the addresses that it has of pools, what its host shows, and how its policies stand'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from node" -f -a "rm" -d 'Retire a host that has no kubelet: delete its Node'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from serve" -f -a "pki" -d 'Make a CA, and certificates for the server, administrators, controllers and hosts'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from serve" -f -a "backup" -d 'Copy everything to a file, while the server runs'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from serve" -f -a "restore" -d 'Replace a store by a backup, while its server doesn\'t run'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from boot" -f -a "install" -d 'Have this host run \'berth boot\' at every boot, before its kubelet starts'
complete -c berth -n "__fish_berth_using_subcommand help; and __fish_seen_subcommand_from boot" -f -a "remove" -d 'Take off this host what \'berth boot install\' put there'
