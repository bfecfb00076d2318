use super::*;

#[test]
fn the_table_has_every_kind_once() {
    let names: Vec<String> = all().iter().map(Resource::qualified).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    assert_eq!(Table::all().count(), 9);
    for table in Table::all() {
        assert_eq!(Table::named(&table.name()), Some(table));
    }
}

#[test]
fn versions_are_those_of_the_crds() {
    let of = |plural| {
        let resource = all().iter().find(|r| r.plural == plural).unwrap();
        let names: Vec<&str> = resource.versions.iter().map(|version| version.name.as_str()).collect();
        (names, resource.api_version(resource.stored))
    };
    assert_eq!(of("nodeippools"), (vec!["v1"], "nmstate.io/v1".to_owned()));
    assert_eq!(of("nodenetworkconfigurationpolicies"), (vec!["v1", "v1beta1"], "nmstate.io/v1".to_owned()));
    assert_eq!(of("nodenetworkstates"), (vec!["v1", "v1beta1"], "nmstate.io/v1beta1".to_owned()));
}
