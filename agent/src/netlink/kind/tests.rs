//! Tables: every option of the model has an attribute, and what is written is read back.

use std::collections::BTreeSet;

use policy::state::option::{OptSpec, OptType};
use policy::state::{IfName, LinkKind, OptValue, Options};

use super::{Names, port_rows, read, read_port, rows, write, write_port};
use crate::netlink::wire::{Attrs, Message, frames};

fn names() -> Names {
    let mut names = Names::default();
    names.insert(7, IfName::new("eth7").unwrap());
    names
}

/// A value that is none of the kernel's defaults.
fn sample(spec: &OptSpec) -> OptValue {
    match spec.ty {
        OptType::Bool => OptValue::Bool(true),
        OptType::Int { max, .. } => OptValue::Int(max.min(9)),
        OptType::Word(words) => OptValue::Text(words[words.len() - 1].0.to_owned()),
        OptType::Mac => OptValue::Text("02:00:00:00:00:01".to_owned()),
        OptType::Ip => OptValue::Text("fd00::9".to_owned()),
        OptType::Ips if spec.path.contains("ip6") => OptValue::Text("fd00::1,fd00::2".to_owned()),
        OptType::Ips => OptValue::Text("10.0.0.1,10.0.0.2".to_owned()),
        OptType::Link => OptValue::Text("eth7".to_owned()),
        OptType::Pairs { .. } => OptValue::Pairs(vec![(1, 2), (3, 4)]),
    }
}

fn payload(write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message::new(0, 0);
    write(&mut message);
    let bytes = message.finish(0);
    frames(&bytes).next().unwrap().unwrap().payload.to_vec()
}

/// Each word of a kind's mode, or one turn for a kind without.
fn modes(kind: &LinkKind) -> Vec<Option<OptValue>> {
    match (kind, kind.spec().option("mode").map(|spec| spec.ty)) {
        (LinkKind::Bond, Some(OptType::Word(words))) => {
            words.iter().map(|(word, _)| Some(OptValue::Text((*word).to_owned()))).collect()
        }
        _ => vec![None],
    }
}

#[test]
fn every_option_of_every_kind_is_written_and_read_back() {
    for kind in LinkKind::KNOWN {
        let mut seen = BTreeSet::new();
        for mode in modes(&kind) {
            let mut options: Options =
                kind.spec().options.iter().map(|spec| (spec.name(), sample(spec))).collect();
            if let (Some(mode), Some(spec)) = (mode, kind.spec().option("mode")) {
                options.insert(spec.name(), mode);
            }
            let whole = options.clone();
            options.retain(|name, _| kind.spec().option(name.as_str()).unwrap().pointless(&whole).is_none());
            let bytes = payload(|message| write(message, &kind, &options, &names()).unwrap());
            let mut back = read(&kind, Attrs::of(&bytes).unwrap(), &names()).unwrap();
            // The kernel reports what is mapped, Berth sends all eight.
            for value in back.values_mut() {
                if let OptValue::Pairs(pairs) = value {
                    pairs.retain(|(_, to)| *to != 0);
                }
            }
            assert_eq!(back, options, "{kind}");
            seen.extend(options.into_keys());
        }
        assert_eq!(seen.len(), kind.spec().options.len(), "{kind}");
        let options: Options =
            kind.spec().port_options.iter().map(|spec| (spec.name(), sample(spec))).collect();
        let bytes = payload(|message| write_port(message, &kind, &options, &names()).unwrap());
        assert_eq!(
            read_port(&kind, Attrs::of(&bytes).unwrap(), &names()).unwrap(),
            options,
            "port of {kind}"
        );
    }
}

#[test]
fn no_row_is_for_an_option_that_nobody_knows() {
    for kind in LinkKind::KNOWN {
        for row in rows(&kind) {
            assert!(kind.spec().option(row.path).is_some(), "{kind}: {}", row.path);
        }
        for row in port_rows(&kind) {
            assert!(kind.spec().port_option(row.path).is_some(), "port of {kind}: {}", row.path);
        }
    }
}
