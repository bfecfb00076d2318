//! The conformance suite: what Berth relies on in a Kubernetes API, asked of a real kube-apiserver and of the embedded one.
//!
//! Each test is a function of a [`Server`](api_tests::server::Server), written against the real one: what that does is right.
//! It runs three times: as `real::…`, as `embedded::…` (inside the process, in memory) and as `served::…` (the embedded API over
//! HTTP, on a store on disk). Where real and embedded may differ is listed in [`differences`], and nowhere else.
//! Tests share one server of each sort and run side by side: each makes its objects under names of its own.

mod builtin;
mod concurrency;
mod create;
mod delete;
mod differences;
mod dry_run;
mod hostile;
mod list;
mod owners;
mod patch;
mod runtime;
mod schema;
mod status;
mod support;
mod update;
mod watch;

/// Every test, once per server. A function that is in no list here is dead code, and doesn't pass the linter.
macro_rules! suite {
    ($($topic:ident: $($test:ident)+;)+) => {
        mod real {
            $(mod $topic { $(
                #[test]
                fn $test() {
                    api_tests::server::run(api_tests::server::Server::real(), crate::$topic::$test);
                }
            )+ })+
        }
        mod embedded {
            $(mod $topic { $(
                #[test]
                fn $test() {
                    api_tests::server::run(crate::support::embedded(), crate::$topic::$test);
                }
            )+ })+
        }
        mod served {
            $(mod $topic { $(
                #[test]
                fn $test() {
                    api_tests::server::run(crate::support::served(), crate::$topic::$test);
                }
            )+ })+
        }
    };
}

suite! {
    create:
        an_object_gets_its_metadata
        a_name_is_taken_once
        fields_of_the_server_are_its_own
        a_resource_version_is_refused
        names_are_made_from_a_prefix
        a_name_is_needed
        names_follow_the_rules_of_dns
        labels_annotations_finalizers_and_owners_are_checked
        a_finalizer_without_a_domain_is_warned_about
        a_namespace_on_what_has_none_is_dropped
        status_is_dropped;
    update:
        an_update_replaces_all_but_the_servers_fields
        a_resource_version_is_needed
        a_stale_one_conflicts_and_changes_nothing
        another_uid_conflicts
        name_and_url_must_agree
        what_is_not_there_is_not_made
        the_same_again_changes_nothing
        generation_grows_with_the_spec_alone;
    patch:
        json_patch_does_all_six_operations
        a_failed_test_is_422_and_nothing_happens
        null_holds_for_what_is_not_there
        a_path_that_is_not_there_is_422
        a_patch_that_can_not_be_read_is_400
        merge_patch_merges_and_removes
        a_resource_version_in_a_patch_guards_it
        test_of_the_resource_version_guards_it
        the_resource_version_can_not_be_taken_out
        identity_can_not_be_patched
        going_can_not_be_written
        an_empty_patch_changes_nothing
        what_is_not_there_is_404
        strategic_merge_is_for_builtin_kinds
        server_side_apply_is_refused_or_works
        tildes_and_slashes_in_keys
        items_of_lists_by_index;
    status:
        a_patch_of_status_touches_status_alone
        an_update_of_status_touches_status_alone
        a_patch_of_the_object_leaves_status
        an_entry_can_be_added_to_a_fresh_status
        status_is_guarded_too
        status_can_be_read
        rules_hold_in_status;
    delete:
        what_is_deleted_is_gone
        what_is_not_there_is_404
        preconditions_guard
        options_are_checked
        options_of_wrong_types_delete_nothing
        finalizers_hold_it
        no_finalizer_is_added_while_it_goes
        a_name_that_goes_is_taken
        the_last_finalizer_by_update_too
        a_collection_goes_by_selector
        a_new_one_has_another_uid;
    owners:
        dependents_go_with_their_owner
        foreground_waits_for_them
        orphans_stay
        one_of_two_owners_is_not_enough
        an_owner_that_never_was
        a_namesake_is_no_owner;
    list:
        a_list_has_a_version_and_is_in_order
        r107_columns_of_pools_and_slices
        label_selectors
        selectors_that_can_not_be_read
        field_selectors
        pages_are_one_snapshot
        pages_with_a_selector
        tokens_that_can_not_be_read
        the_past_is_gone_for_lists_too
        not_older_than
        a_version_that_is_yet_to_come
        options_that_do_not_go_together
        one_object_by_version;
    watch:
        events_in_order_from_a_version
        resume_without_a_gap
        what_is_there_comes_first
        a_version_of_long_ago_is_gone
        initial_events_end_with_a_bookmark
        bookmarks_only_for_who_asks
        a_selector_turns_changes_into_comings_and_goings
        by_name
        two_watchers_see_the_same
        a_watch_ends_when_its_time_is_over
        status_and_deletion_are_seen
        options_that_do_not_go_together
        a_version_that_can_not_be_read
        all_namespaces_or_one;
    schema:
        unknown_fields_are_pruned_and_warned_about
        many_warnings_are_cut_short
        nulls_are_as_good_as_nothing
        unknown_fields_are_refused_when_strict
        unknown_fields_are_ignored_when_asked
        duplicate_fields
        free_form_fields_keep_all
        defaults_are_filled_in
        violations_name_their_field
        every_violation_at_once
        changes_that_are_not_allowed
        wrong_types_are_named
        two_versions_of_one_object
        both_versions_are_watched
        lists_say_their_kind;
    dry_run:
        nothing_is_made
        nothing_is_changed
        nothing_is_deleted
        a_dry_run_is_checked_as_any
        only_all_is_known;
    concurrency:
        guarded_writers_never_lose_a_write
        unguarded_patches_with_a_test
        one_name_one_winner
        lease_races_have_one_winner
        different_objects_do_not_conflict
        a_watch_sees_every_write;
    hostile:
        broken_json
        another_kind_or_version
        bodies_that_are_too_large
        deep_nesting
        paths_that_lead_elsewhere
        methods_that_are_not_there
        bodies_of_other_types
        yaml_is_read
        odd_queries
        odd_patches
        patches_that_copy_themselves;
    builtin:
        node_and_its_status
        node_conditions_merge_by_type
        node_lists_merge_or_replace
        node_labels_by_strategic_merge
        node_fields_are_typed
        node_field_selectors
        lease_times_keep_their_microseconds
        times_have_all_their_microseconds
        lease_update_is_guarded
        namespaces_must_exist
        the_namespace_must_agree
        default_is_there_and_stays
        a_namespace_goes
        event_of_the_agent
        events_in_both_groups
        event_field_selectors
        bodies_in_protobuf
        a_list_over_all_namespaces;
    runtime:
        typed_objects
        typed_lists_by_pages
        watched_objects_follow
        watcher_survives_an_old_version
        leases_by_type
        errors_by_type
        the_version_is_one_that_clients_know;
}
