use super::*;
use tenon_abi::Str;

fn store() -> KnobStore {
    let mut store = KnobStore::default();
    for (scope, name, kind, default) in [
        ("cpu", "threads", KnobKind::INT, "4"),
        ("cpu", "fast_math", KnobKind::BOOL, "false"),
        ("cpu", "label", KnobKind::STRING, ""),
        ("session", "slack", KnobKind::FLOAT, "0.5"),
    ] {
        let def = KnobDef::new(scope, name, kind, default, "help.", SourceInfo::default()).unwrap();
        store.declare(Arc::new(def)).unwrap();
    }
    store
}

fn pairs(items: &[(&str, &str)]) -> Vec<(String, String)> {
    items.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
}

#[test]
fn a_higher_layer_wins() {
    let environment =
        pairs(&[("TENON_CPU_THREADS", "1"), ("TENON_SESSION_SLACK", "2"), ("PATH", "/bin")]);
    let options = pairs(&[("cpu.threads", "2"), ("cpu.fast_math", "on")]);
    let set = pairs(&[("cpu.threads", "7"), ("cpu.threads", "0x10")]);
    let knobs = store().snapshot(environment, &options, &set).unwrap();
    assert_eq!(knobs.int("cpu", "threads"), Some(16));
    assert_eq!(knobs.get("cpu", "threads").unwrap().origin, KnobOrigin::Set);
    assert_eq!(knobs.bool("cpu", "fast_math"), Some(true));
    assert_eq!(knobs.get("cpu", "fast_math").unwrap().origin, KnobOrigin::Option);
    assert_eq!(knobs.float("session", "slack"), Some(2.0));
    assert_eq!(knobs.get("session", "slack").unwrap().origin, KnobOrigin::Environment);
    assert_eq!(knobs.text("cpu", "label"), Some(""));
    assert_eq!(knobs.get("cpu", "label").unwrap().origin, KnobOrigin::Default);
    assert_eq!(knobs.int("cpu", "fast_math"), None, "read as another type");
    assert_eq!(knobs.iter().count(), 4);
}

#[test]
fn an_unknown_knob_names_the_nearest() {
    let errors = store().snapshot([], &[], &pairs(&[("cpu.thread", "1")])).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "unknown knob 'cpu.thread' (--set): did you mean 'cpu.threads'?"
    );
    assert_eq!(errors[0].code(), Code::NOT_FOUND);
    let empty = KnobStore::default().snapshot([], &pairs(&[("a.b", "1")]), &[]).unwrap_err();
    assert_eq!(empty[0].to_string(), "unknown knob 'a.b' (session option): no knob is declared");
}

#[test]
fn variables_of_absent_plugins_pass_and_misspelt_ones_do_not() {
    let fine = pairs(&[("TENON_CUDA_STREAMS", "2"), ("TENON_PLUGIN_PATH", "/plugins")]);
    assert!(store().snapshot(fine, &[], &[]).is_ok());
    let errors = store().snapshot(pairs(&[("TENON_CPU_THREDS", "2")]), &[], &[]).unwrap_err();
    assert!(errors[0].to_string().contains("did you mean 'TENON_CPU_THREADS'"), "{}", errors[0]);
}

/// A user who reads `isolate_deadline_ms` in a message or a table leaves out the scope.
#[test]
fn a_knob_without_its_scope_is_told_with_it() {
    let mut store = store();
    let names = ["isolate_deadline_ms", "isolate_look_us", "files"];
    for name in names {
        let source = SourceInfo::default();
        let def = KnobDef::new("host", name, KnobKind::STRING, "", "", source).unwrap();
        store.declare(Arc::new(def)).unwrap();
    }
    let told = |environment: &[(&str, &str)], set: &[(&str, &str)]| {
        let errors = store.snapshot(pairs(environment), &[], &pairs(set)).unwrap_err();
        errors[0].to_string()
    };
    for set in ["isolate_deadline_ms", "isolate_deadline", "hots.isolate_deadline_ms"] {
        let expected =
            format!("unknown knob '{set}' (--set): did you mean 'host.isolate_deadline_ms'?");
        assert_eq!(told(&[], &[(set, "1")]), expected);
    }
    assert_eq!(
        told(&[], &[("fiels", "1")]),
        "unknown knob 'fiels' (--set): did you mean 'host.files'?",
        "the distance of a short name is not that of the scope that it lacks"
    );
    assert_eq!(
        told(&[("TENON_ISOLATE_DEADLINE_MS", "1")], &[]),
        "unknown knob 'TENON_ISOLATE_DEADLINE_MS' (environment): did you mean 'TENON_HOST_ISOLATE_DEADLINE_MS'?"
    );
}

#[test]
fn every_wrong_value_is_reported() {
    let environment = pairs(&[("TENON_CPU_THREADS", "many")]);
    let options = pairs(&[("cpu.fast_math", "yes"), ("session.slack", "1,5")]);
    let errors = store().snapshot(environment, &options, &[]).unwrap_err();
    assert_eq!(errors.len(), 3);
    assert_eq!(
        errors[0].to_string(),
        "knob 'cpu.threads' (environment) is of type int, found 'many'"
    );
    assert!(errors[1].to_string().contains("is of type bool (true or false), found 'yes'"));
}

#[test]
fn bad_declarations_are_refused() {
    let new = |scope, name, kind, default| {
        KnobDef::new(scope, name, kind, default, "", SourceInfo::default())
    };
    assert!(matches!(new("Cpu", "x", KnobKind::INT, "1"), Err(KnobError::Name { .. })));
    assert!(matches!(new("cpu", "", KnobKind::INT, "1"), Err(KnobError::Name { .. })));
    assert!(matches!(new("cpu", "x", KnobKind(9), "1"), Err(KnobError::Kind { found: 9, .. })));
    assert!(matches!(new("cpu", "x", KnobKind::INT, "z"), Err(KnobError::Value { .. })));
    let mut store = store();
    let again = store.get("cpu.threads").unwrap().clone();
    assert!(store.declare(again).is_ok(), "the same declaration is harmless");
    let other = new("cpu", "threads", KnobKind::BOOL, "true").unwrap();
    assert!(matches!(store.declare(Arc::new(other)), Err(KnobError::Duplicate { .. })));
    let same_variable = new("cpu_fast", "math", KnobKind::BOOL, "true").unwrap();
    assert!(matches!(store.declare(Arc::new(same_variable)), Err(KnobError::Duplicate { .. })));
}

#[test]
fn definitions_are_read_from_the_boundary() {
    let source = tenon_abi::Source { krate: Str::new("c"), file: Str::new("f.rs"), line: 3 };
    let mut raw = tenon_abi::KnobDef {
        struct_size: size_of::<tenon_abi::KnobDef>() as u32,
        kind: KnobKind::INT,
        name: Str::new("tile"),
        default_value: Str::new("1_024"),
        help: Str::new("Rows of a tile."),
        source,
        ext: std::ptr::null(),
    };
    // SAFETY: a whole struct with static texts.
    let def = unsafe { KnobDef::from_abi("cpu", &raw) }.unwrap();
    assert_eq!((def.full_name().as_str(), &def.default), ("cpu.tile", &KnobValue::Int(1024)));
    assert_eq!(def.variable(), "TENON_CPU_TILE");
    assert_eq!(def.source.to_string(), "c f.rs:3");
    raw.struct_size -= 1;
    // SAFETY: as above.
    let error = unsafe { KnobDef::from_abi("cpu", &raw) }.unwrap_err();
    assert!(matches!(error, KnobError::Raw(RawError::StructSize { .. })));
}

#[test]
fn settings_are_split_at_the_first_equals_sign() {
    assert_eq!(parse_setting("a.b=c=d").unwrap(), ("a.b".to_owned(), "c=d".to_owned()));
    assert!(parse_setting("a.b").unwrap_err().to_string().contains("expected scope.name=value"));
}

#[test]
fn values_cross_the_boundary_with_their_kind() {
    assert_eq!(KnobValue::Bool(true).to_abi().boolean, 1);
    assert_eq!(KnobValue::Int(-2).to_abi().int_value, -2);
    assert_eq!(KnobValue::Float(0.5).to_abi().float_value, 0.5);
    let text = KnobValue::String("x".into());
    // SAFETY: borrowed from `text`, which lives.
    assert_eq!(unsafe { text.to_abi().text.text() }, Some("x"));
}
