//! The tools that people type, against an API with real objects in it: a `berth serve` of its own for each test, and one real
//! API server for all of them. What is asserted is what a person or a script sees, and what is in the API afterwards.
//!
//! No controller and no agent runs, so nothing changes but by what a test does.

mod between;
mod field;
#[path = "../common/folder.rs"]
mod folder;
mod nodes;
mod plugin;
mod policies;
mod pools;
mod verify;

use field::Field;

/// Each story on both.
macro_rules! stories {
    ($($module:ident::$story:ident),+ $(,)?) => {
        mod served {
            $(#[test]
            fn $story() {
                crate::$module::$story(&crate::Field::served());
            })+
        }

        /// One after the other, each from nothing: pools that overlap, and lists of all nodes, are shared by all.
        #[test]
        fn real() {
            let mut failed = Vec::new();
            $(
                let field = Field::real();
                let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| $module::$story(&field)));
                if ran.is_err() {
                    failed.push(stringify!($story));
                }
            )+
            assert!(failed.is_empty(), "on a real API server: {failed:?}");
        }
    };
}

stories! {
    nodes::r82_nodes_are_listed_with_their_addresses,
    nodes::a_host_without_a_kubelet_is_retired,
    nodes::what_is_nested_too_deeply_keeps_nobody_from_the_rest,
    plugin::it_is_a_plugin_of_kubectl,
    policies::r22_r24_r32_a_preview_says_who_gets_what_and_who_nothing,
    policies::r113_a_pool_whose_slices_are_all_cut_runs_out,
    pools::r42_r82_pools_are_listed_shown_and_explained,
    pools::r40_release_quarantines_what_is_gone_and_refuses_the_living,
    pools::rule6_hold_and_resume,
    pools::what_is_gone_by_then_is_held_no_longer,
    pools::r102_what_the_cluster_has_is_not_free,
    pools::history_is_events_and_the_ledger,
    pools::a_slip_of_the_pen_is_answered,
    pools::r119_a_pool_of_slices_is_one_to_look_at,
    pools::r119_slices_of_nodes_that_are_gone_are_the_controllers_to_free,
    verify::r34_r40_r66_r67_differences_are_named,
    verify::what_cant_be_read_counts,
}
