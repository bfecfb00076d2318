//! Goldens: a case is a folder of `goldens`, and a test of its own.
//!
//! `cmd` (the line, and why it is there; files are relative to `fixtures`) goes in; `stdout`, `stderr` and `code` come
//! out, each there only if it isn't empty or 0. `UPDATE_GOLDENS=1` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ran, fixtures, line, tests};

goldens! {
    crds_unknown,
    explain_bad_ip,
    explain_bare,
    explain_both,
    explain_broken,
    explain_broken_status,
    explain_disagreeing,
    explain_dual_stack,
    explain_encoding,
    explain_five_numbers,
    explain_gateway,
    explain_holders,
    explain_holders_json,
    explain_ip,
    explain_ip_elsewhere,
    explain_ip_v6,
    explain_no_such_range,
    explain_octet_end,
    explain_octet_ends,
    explain_offset_250,
    explain_offset_251,
    explain_offset_262,
    explain_offset_beyond,
    explain_offset_in_range,
    explain_offset_of_which,
    explain_offsets_16,
    explain_offsets_24,
    explain_offsets_v6,
    explain_one_range,
    explain_ranges,
    explain_several_pools,
    explain_slices,
    explain_stdin_list,
    explain_traffic_1,
    explain_wide,
    explain_wide_yaml,
    explain_wrong_kind,
    folder_as_file,
    missing_file,
    plan_bond,
    plan_broken_state,
    plan_captures,
    plan_enactment,
    plan_ipam,
    plan_json,
    plan_losses,
    plan_losses_json,
    plan_misspelt,
    plan_nothing,
    plan_nothing_json,
    plan_of_render,
    plan_of_shown,
    plan_policy,
    plan_refused_by_host,
    plan_unsupported,
    plan_wrong_current,
    plan_wrong_in_both,
    plan_wrong_kind,
    plan_yaml,
    pool_show_holders,
    pool_show_no_such_pool,
    render_a_state,
    render_bad_label,
    render_bare_document,
    render_beside_spec,
    render_broken_pool,
    render_capture_not_found,
    render_capture_syntax,
    render_captured,
    render_captures,
    render_chooses,
    render_dual_stack,
    render_dual_stack_held,
    render_empty,
    render_enactment_contradicted,
    render_enactment_holds,
    render_exhausted,
    render_ipam,
    render_misspelt,
    render_next_slice,
    render_no_pool_in_file,
    render_not_what_collides,
    render_other_group,
    render_overlapping_pools,
    render_own_slice,
    render_pool_twice,
    render_pools_only,
    render_range_by_label,
    render_refused_policy,
    render_reserved,
    render_reuses_quarantined,
    render_reuses_what_is_held,
    render_several_policies,
    render_static_ip,
    render_static_ip_json,
    render_stdin,
    render_unknown_pool,
    render_unselected_node,
    render_unsupported,
    render_without_current,
    render_without_node,
    render_without_pools,
    render_wrong_kind,
    stdin_twice,
    yaml_caret,
    yaml_deep,
    yaml_empty,
    yaml_key_twice,
    yaml_laughs,
    yaml_list,
    yaml_not_text,
    yaml_stdin_caret,
}

fn root() -> PathBuf {
    tests().join("goldens")
}

fn check(case: &str) {
    let folder = root().join(case);
    let text = fs::read_to_string(folder.join("cmd")).expect("cmd");
    let command = text.lines().find(|line| !line.starts_with('#')).expect("a line to run");
    let actual = line(&fixtures(), command);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        return update(&folder, &actual);
    }
    assert_eq!(actual, expected(&folder), "{command}");
}

fn expected(folder: &Path) -> Ran {
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    Ran { code: read("code").trim().parse().unwrap_or(0), stdout: read("stdout"), stderr: read("stderr") }
}

fn update(folder: &Path, actual: &Ran) {
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        if text.is_empty() {
            fs::remove_file(path).ok();
        } else {
            fs::write(path, text).expect(file);
        }
    };
    write("stdout", &actual.stdout);
    write("stderr", &actual.stderr);
    write("code", &if actual.code == 0 { String::new() } else { format!("{}\n", actual.code) });
}
