//! Line, column, caret (STYLE 7).

use super::*;
use crate::capture::Spot;

fn text(line: &str) -> String {
    eval(&[("x", line)]).expect_err(line).to_string()
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        text("interfaces.größe=ä"),
        "capture \"x\": 1:17: '=' alone is no operator: expected '=='\n| interfaces.größe=ä\n|                 ^"
    );
    assert_eq!(
        text("interfaces.名前==\"日本"),
        "capture \"x\": 1:16: this quote is never closed\n| interfaces.名前==\"日本\n|                ^"
    );
}

#[test]
fn lines_count_too() {
    let source = "capture.a |\n  interfaces.name=eth1\n";
    assert_eq!(
        text(source),
        "capture \"x\": 2:18: '=' alone is no operator: expected '=='\n|   interfaces.name=eth1\n|                  ^"
    );
}

#[test]
fn tabs_keep_the_caret_in_place() {
    assert!(text("\tinterfaces.name=a").ends_with("| \tinterfaces.name=a\n| \t               ^"));
}

#[test]
fn control_characters_are_not_printed() {
    assert!(!text("interfaces.\u{1b}[31m=a").contains('\u{1b}'));
}

#[test]
fn any_offset_is_a_spot() {
    let source = "a\né\r\nb";
    for offset in 0..20 {
        let spot = Spot::of(source, offset);
        assert!(spot.line >= 1 && spot.column >= 1 && !spot.text.contains(['\n', '\r']), "{spot:?}");
    }
    assert_eq!(
        Spot::of(source, 3),
        Spot { line: 2, column: 1, text: "é".into() },
        "inside a character: its start"
    );
    assert_eq!(Spot::of("", 5), Spot { line: 1, column: 1, text: String::new() });
}

#[test]
fn a_long_list_of_names_is_cut() {
    let many: Vec<(String, String)> = (10..40).map(|at| (format!("c{at}"), "routes.config".into())).collect();
    let mut all: BTreeMap<String, String> = many.into_iter().collect();
    all.insert("x".into(), "capture.zzz".into());
    let text = Captures::parse(&all).unwrap_err().to_string();
    assert!(text.contains("known: c10, c11, c12, c13, c14, c15, c16, c17, c18, c19 and 20 more\n"), "{text}");
}
