//! Agents on real namespaces and cards, with the controller, on the embedded API and on a real API server. Needs root.
//!
//! `field` has agents in this process, `fleet` as processes of their own; each of the rest is a subject. All end with the same
//! question, whether ledgers, enactments, journals and kernels agree (`check`). Each test of
//! [`suite!`] runs as `embedded::…` and, on a real API server, as `real::…`. There Nodes are made as a kubelet does,
//! each agent has a token of a pod on its own Node, the controller one of its own, and both have what `deploy` gives them, no
//! more. Tests in no list run once, and each says why: they are about what the embedded API alone has (its stores, hosts that
//! register their Nodes), or about one host on its own. `rights` and `upgrade` have a real API server of their own.

mod alone;
mod check;
mod cluster;
mod collisions;
mod conditions;
mod crowd;
mod failing;
mod faults;
mod field;
mod fleet;
#[path = "../common/folder.rs"]
mod folder;
mod hold;
mod holders;
mod listen;
mod literals;
mod many;
mod names;
mod nodes;
mod on;
mod pause;
mod probes;
mod ranges;
mod readiness;
mod report;
mod resets;
mod restart;
mod rights;
mod rollout;
mod slices;
mod story;
mod told;
mod upgrade;
mod waits;
mod whole;
mod world;

const SEEDS: &str = "10.10.10.0/24";

/// Every test, once per API. A function that is in no list here is dead code, and doesn't pass the linter.
macro_rules! suite {
    (
        real { $($real:ident: $($only:ident)+;)+ }
        both { $($both:ident: $($test:ident)+;)+ }
    ) => {
        mod embedded {
            $(mod $both { $(
                #[test]
                fn $test() {
                    crate::on::embedded(crate::$both::$test);
                }
            )+ })+
        }
        mod real {
            $(mod $both { $(
                #[test]
                fn $test() {
                    crate::on::real(crate::$both::$test);
                }
            )+ })+
            $(mod $real { $(
                #[test]
                fn $only() {
                    crate::on::real(crate::$real::$only);
                }
            )+ })+
        }
    };
}

suite! {
    real {
        hold:
            the_api_server_is_restarted
            watches_miss_events
            r23_there_are_two_api_servers
            a_right_that_is_lacking_is_named
            etcd_is_paused
            hosts_are_cut_off
            the_api_server_is_busy
            tokens_expire;
        readiness:
            a_change_that_loses_the_nodes_readiness_is_undone;
        waits:
            kubectl_applies_both_versions
            kubectl_waits_for_how_it_ends;
    }
    both {
        alone:
            r22_r23_hosts_without_a_controller_serve_themselves
            room_is_found_without_a_controller_and_one_that_comes_back_goes_on
            a_claim_that_a_leader_leaves_is_served_by_its_host;
        collisions:
            r17_an_address_in_use_is_declined_and_another_used
            r17_r41_an_address_in_use_of_a_sliced_pool_is_free_in_time
            r17_r41_what_a_slice_has_aside_is_free_without_a_controller
            r17_a_host_that_serves_itself_declines_too
            r17_r27_at_boot_the_wire_is_asked_first
            r17_what_is_on_the_card_is_not_asked_for
            r17_nobody_is_asked_where_that_is_off
            r17_without_a_carrier_the_wire_is_asked_later
            r17_who_answers_for_everything_is_named
            r17_an_ipv6_address_in_use_is_declined;
        conditions:
            r12_r13_a_pool_says_when_it_is_up_to_date
            r16_pools_that_overlap_say_so_and_recover;
        crowd:
            r14_r22_r23_r68_a_crowd_with_the_controller
            r22_r23_a_crowd_without_a_controller
            r22_r23_r104_a_crowd_whose_controller_is_killed_in_the_middle;
        failing:
            r14_r32_r69_an_exhausted_pool_says_so_and_recovers
            r18_what_cannot_be_rendered_fails_with_the_diagnostic;
        faults:
            r22_r23_r30_r70_killed_while_serving_themselves
            r29_r33_r40_r71_r73_killed_while_nodes_and_pools_come_and_go
            r33_r97_killed_when_a_pool_ends
            r113_r117_killed_while_slices_come_and_go
            r22_r30_r67_r70_killed_while_policies_come_and_go;
        holders:
            r25_an_agent_writes_what_is_its_own
            r30_a_host_that_is_selected_no_more_lets_go
            r29_r40_a_lost_host_is_found_out
            r73_a_namesake_inherits_nothing
            r24_r71_a_deleted_entry_comes_back
            rule1_who_copies_an_id_has_another
            r29_r40_what_a_host_sets_aside_for_ever_is_free_in_time
            r26_a_new_address_waits_for_the_node_to_be_ready
            r31_captures_stay_and_a_policy_made_anew_gets_the_same_address
            r29_r34_r40_a_lost_host_is_found_out_by_a_reset;
        literals:
            r51_rule11_an_address_that_a_policy_names_is_claimed
            rule11_of_two_nodes_one_has_it_and_the_other_says_who
            rule11_a_renamed_policy_keeps_its_address_from_others
            rule11_no_capture_gets_what_a_policy_names
            rule11_what_a_pool_gives_nobody_is_refused
            rule5_rule11_a_pool_made_later_finds_who_has_it
            rule5_rule11_a_range_appended_later_finds_who_has_it
            rule11_what_was_in_use_unclaimed_stays_on_the_card
            rule11_a_policy_from_before_its_pool_claims_what_it_names
            rule11_an_edited_policy_keeps_its_address_until_it_has_the_other
            r51_r92_of_two_families_a_literal_is_one
            r51_rule11_in_a_sliced_pool_the_slice_is_claimed
            r17_rule11_a_literal_in_use_on_the_wire_is_used_when_it_is_free
            rule9_rule11_what_it_costs_to_know_the_pools
            rule11_pools_that_cannot_be_read_hold_up_who_names_an_address_alone
            rule11_what_is_held_needs_no_grant_to_be_put_back
            rule11_a_pool_that_goes_takes_nothing_along;
        names:
            an_enactment_of_another_node_is_left_alone
            captures_of_a_policy_of_before_are_not_used
            captures_are_looked_up_once;
        nodes:
            rule7_a_node_registered_anew_never_loses_its_address
            rule7_a_marked_address_that_nobody_knows_is_taken_off;
        probes:
            a_change_that_loses_the_gateway_is_undone
            a_probe_that_there_is_not_is_named_and_nothing_is_touched
            a_change_that_loses_the_api_is_undone
            a_change_that_loses_dns_is_undone
            the_api_is_asked_from_the_agents_own_network;
        ranges:
            r19_the_prefix_length_is_the_ranges
            r19_r63_r64_r85_the_range_that_gave_an_address_speaks_for_it
            a_claim_has_an_address_of_each_family
            a_pool_that_nobody_uses_goes_at_once
            r45_r46_r47_r48_r50_r54_the_static_band_is_given_last
            r59_a_pool_that_gives_says_how_its_ledger_is_written
            r33_r66_r97_r99_a_pool_made_anew_takes_back_what_it_has
            r60_r74_r109_a_full_pool_grows
            r62_r64_r65_r82_r95_r96_a_range_drains_and_goes
            r62_r74_r75_a_range_goes_when_another_has_all_it_holds
            r78_r92_both_families_or_none
            r81_r103_pools_of_the_configuration_are_there
            r85_r87_r90_r105_r109_ties_are_broken
            r102_networks_of_the_cluster_are_never_given
            r100_of_two_claims_to_one_address_the_holders_counts
            r101_r104_a_range_more_serves_who_waits;
        report:
            a_report_follows_its_host
            an_enactment_is_its_nodes_and_goes_with_its_policy;
        resets:
            r15_r38_a_reset_that_fails_says_so
            r15_r38_r40_what_cannot_be_read_ends_with_its_node
            r29_r40_many_that_vanish_at_once_need_a_word
            r40_slices_of_a_pool_that_is_gone_need_a_word
            r35_r38_a_sliced_pool_is_reset
            rule6_a_hold_out_of_a_backup_has_its_time_before_it
            r35_r38_r39_a_whole_pool_is_reset
            r36_a_name_that_no_pool_has_is_told
            r36_r37_a_sliced_pool_is_reset_in_part
            r36_r38_a_pool_is_reset_for_a_policy
            r37_r38_a_pool_is_reset_for_a_node;
        restart:
            r27_a_restarted_agent_keeps_its_address
            r27_rule1_what_a_policy_has_is_kept_while_it_is_refused_more
            rule7_a_host_whose_node_is_deleted_takes_its_addresses_off_for_good
            r27_an_api_that_takes_no_writes_keeps_no_address_off
            r27_r111_a_start_without_the_api_is_from_the_journal
            r110_a_rollback_keeps_what_is_held
            what_cannot_be_read_is_not_gone
            r27_an_api_that_does_not_answer_holds_no_repair_up
            a_second_agent_for_one_host_refuses;
        rollout:
            a_policy_counts_its_nodes
            as_many_hosts_as_allowed_are_at_work
            what_cannot_be_applied_is_retried_and_the_rest_gives_up
            policies_are_applied_in_the_order_of_their_names;
        slices:
            r93_r112_r113_r114_r115_r116_every_node_has_a_slice_of_its_own
            r113_r115_r119_a_node_that_fills_its_slice_takes_another
            r92_of_two_families_a_node_takes_two_slices_or_none
            r118_slices_run_out_and_room_is_found
            r62_r64_r96_a_sliced_range_drains_and_goes
            rule6_what_a_restore_holds_gives_again_by_itself
            r117_the_slice_of_a_lost_node_is_set_aside_freed_and_used_again
            r33_r97_a_sliced_pool_made_anew_gives_nobody_what_is_held
            rule7_a_node_made_anew_keeps_what_is_on_its_card
            r71_a_slice_deleted_by_force_comes_back
            rule2_what_was_given_out_of_a_slice_that_goes_is_given_up
            r115_r119_a_crowd_without_a_controller;
        story:
            r20_r21_r22_r28_one_policy_gives_every_host_its_own_addresses
            drift_is_put_back
            r30_what_else_is_on_the_card_stays
            an_edited_policy_takes_its_address_along;
        told:
            drift_and_pools_that_run_out_are_told
            a_policy_that_fails_is_told
            who_fights_is_told_and_given_time;
        whole:
            r27_r111_the_api_is_away_for_a_while
            a_policy_is_changed_under_way
            a_host_that_dies_at_work_keeps_nobody_from_it
            a_second_agent_for_one_host_ends_at_once
            a_policy_is_edited_while_hosts_wait_for_a_slot
            an_agent_is_told_to_stop_under_way;
    }
}
