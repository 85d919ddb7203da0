//! Growth: a link of a later version, one of an unknown tag, and one that is missing do no harm, whether the
//! plugin is newer than the host or the host newer than the plugin.

use std::{fmt::Debug, mem::offset_of, process::Command, ptr, str::FromStr};
use tenon_abi::{
    ExtCost, ExtHeader, ext_tags,
    layout::{FieldLayout, StructLayout, ext_hash},
    links::ExtLayout,
};
use tenon_framework::registry::RegistryError;
use tenon_host::{LoadError, Plugins, Settings, Step};
use tenon_tests::fixtures;

fn load(name: &str) -> Result<Plugins, LoadError> {
    let plugins = Plugins::with_settings(Settings::default()).unwrap();
    plugins.load([fixtures::growth(name)]).into_result().map(|_| plugins)
}

/// What this host reads of a plugin's cost.
fn cost_here(name: &str) -> Option<(f64, f64)> {
    let plugins = load(name).unwrap();
    let registry = plugins.registry();
    let [kernel] = registry.kernels_of("GrowthOp") else { panic!("one kernel of GrowthOp") };
    kernel.cost.map(|cost| (cost.fixed_ns, cost.per_element_ns))
}

#[test]
fn this_host_reads_an_old_a_new_and_no_link() {
    assert_eq!(cost_here("version1"), Some((100.0, 2.0)));
    assert_eq!(cost_here("version2"), Some((100.0, 2.0)), "of a later version, what it knows");
    assert_eq!(cost_here("unknown"), None, "an unknown tag is skipped");
}

#[test]
fn a_link_that_is_not_what_it_says_is_refused() {
    let error = load("mislabelled").err().unwrap();
    assert_eq!(error.step(), Step::Commit, "{error}");
    let LoadError::Commit { errors, .. } = &error else { panic!("{error}") };
    let [RegistryError::Link { link, .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((link.link, link.version, link.found), ("cost", 1, 0xbad));
    assert!(error.to_string().contains("build the plugin for this host's ABI"), "{error}");
}

/// The cost link as a later host knows it: version 2 has one more field.
#[repr(C)]
struct GrownCost {
    header: ExtHeader,
    fixed_ns: f64,
    per_element_ns: f64,
    per_byte_ns: f64,
}

const FIELDS: &[FieldLayout] = &[
    FieldLayout { name: "header", offset: offset_of!(GrownCost, header) },
    FieldLayout { name: "fixed_ns", offset: offset_of!(GrownCost, fixed_ns) },
    FieldLayout { name: "per_element_ns", offset: offset_of!(GrownCost, per_element_ns) },
    FieldLayout { name: "per_byte_ns", offset: offset_of!(GrownCost, per_byte_ns) },
];
const GROWN: StructLayout =
    StructLayout { name: "ExtCost", size: size_of::<GrownCost>(), fields: FIELDS };
static LATER: ExtLayout =
    ExtLayout { tag: ext_tags::COST, versions: &[GROWN.earlier(3, size_of::<ExtCost>()), GROWN] };

/// What a later host reads: the numbers of version 1, and the further one where it is there.
#[derive(Debug, Default, PartialEq)]
struct Read {
    numbers: Option<(f64, f64)>,
    per_byte: Option<f64>,
    agrees: bool,
}

fn word<T: FromStr<Err: Debug>>(word: &str) -> T {
    word.parse().unwrap()
}

/// Lets a plugin register with a host that knows version 2.
fn read_later(name: &str) -> Read {
    let ran = Command::new(fixtures::later_host(name)).output().unwrap();
    assert!(ran.status.success(), "{name}: {:?}", ran.status);
    let said = String::from_utf8(ran.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    let [version, size, hash, fixed_ns, per_element_ns, further @ ..] = &words[..] else {
        assert_eq!(words, ["none"]);
        return Read { agrees: true, ..Read::default() };
    };
    let (version, size, layout_hash) = (word(version), word(size), word(hash));
    let header = ExtHeader { tag: ext_tags::COST, version, size, layout_hash, next: ptr::null() };
    Read {
        numbers: Some((word(fixed_ns), word(per_element_ns))),
        per_byte: further.first().map(|number| word(number)),
        agrees: LATER.agrees(&header),
    }
}

#[test]
fn a_later_host_reads_an_old_a_new_and_no_link() {
    let old = read_later("version1");
    assert_eq!(old, Read { numbers: Some((100.0, 2.0)), per_byte: None, agrees: true });
    let none = read_later("unknown");
    assert_eq!(none, Read { numbers: None, per_byte: None, agrees: true });
    let new = read_later("version2");
    assert_eq!((new.numbers, new.per_byte), (Some((100.0, 2.0)), Some(0.5)));
    assert!(
        new.agrees,
        "version 2 is laid out as the later host knows it: {:#x}",
        ext_hash(&GROWN)
    );
}

#[test]
fn a_mislabelled_link_does_not_agree_with_a_later_host_either() {
    assert!(!read_later("mislabelled").agrees);
}
