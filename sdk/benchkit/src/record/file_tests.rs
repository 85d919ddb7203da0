use super::*;
use crate::record::{
    Case, CostSource, Counts, Input, Machine, Plugin, Samples, Summary, Timing, Variant, Work,
    testing,
};

fn summary() -> Summary {
    Summary {
        median: 10.5,
        interval: [10.25, 11.0],
        mad: 0.5,
        min: 10.0,
        max: 12.0,
        p5: 10.0,
        p95: 12.0,
        mild_outliers: 1,
        severe_outliers: 0,
        converged: true,
    }
}

fn record() -> Record {
    let ns = vec![10.0, 10.5, 0.1 + 0.2];
    let kernel = Samples {
        ns,
        rounds: vec![0, 1, 2],
        processes: vec![0; 3],
        batch: 64,
        summary: summary(),
        around: None,
    };
    let input =
        Input { name: "x".into(), dtype: "float".into(), dims: vec![1000], constant: false };
    Record {
        bench: "Add".into(),
        peer: "tenon avx2".into(),
        version: "0.1.0".into(),
        size: "x=1000".into(),
        threads: 1,
        cold: true,
        counters: Some(Counts { calls: 9, cycles: Some(1.5), ..Counts::default() }),
        median_ns: 10.5,
        min_ns: 10.0,
        max_ns: 12.0,
        samples: 3,
        rate: 1.5,
        best_rate: 1.6,
        unit: "GB/s".into(),
        cpu: "a \"CPU\"".into(),
        case: Case {
            op: "Add".into(),
            attrs: [("T".to_owned(), "float".to_owned())].into(),
            inputs: vec![input],
            at: Some(1000),
            node: None,
            calls: 1,
        },
        variant: Variant {
            device: "CPU".into(),
            label: "avx2".into(),
            plugin: "tenon-cpu".into(),
            plugin_version: "0.1.0".into(),
            digest: "ab".into(),
            source: "here".into(),
            chosen: true,
        },
        timing: Timing::Kernel,
        kernel,
        dispatch: None,
        work: Work { flops: None, read: 8.0, written: 8.0, source: CostSource::Bytes },
        reached: None,
        checked: Some("reference".into()),
        sampled: None,
        profile: None,
    }
}

fn report() -> Report {
    let made = testing::run();
    let run = Run {
        budget_s: 0.1,
        seed: 7,
        machine: Machine { cpu: "a \"CPU\"".into(), ..made.machine },
        plugins: made.plugins.into_iter().map(|p| Plugin { digest: "ab".into(), ..p }).collect(),
        noise_floor: Some(0.01),
        ..made
    };
    Report {
        run,
        records: vec![record(), record()],
        comparisons: Vec::new(),
        crossovers: Vec::new(),
        problems: Vec::new(),
    }
}

fn written(report: &Report) -> String {
    let mut file = Vec::new();
    write_lines(report, &mut file).unwrap();
    String::from_utf8(file).unwrap()
}

#[test]
fn what_is_written_is_read_back_to_the_bit() {
    let report = report();
    assert_eq!(read_lines(written(&report).as_bytes()).unwrap(), report);
}

#[test]
fn each_record_has_the_fields_of_the_peers_scripts_on_a_line_that_begins_with_a_brace() {
    let text = written(&report());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with(" {"));
    for line in &lines[1..] {
        let read: serde_json::Value = serde_json::from_str(line).unwrap();
        let fields = [
            "bench",
            "peer",
            "version",
            "size",
            "threads",
            "median_ns",
            "min_ns",
            "max_ns",
            "samples",
            "rate",
            "best_rate",
            "unit",
        ];
        for field in fields {
            assert!(line.starts_with('{') && read.get(field).is_some(), "{field}: {line}");
        }
        assert_eq!((read["samples"].as_u64(), read["threads"].as_u64()), (Some(3), Some(1)));
    }
}

#[test]
fn what_is_no_file_of_records_is_refused_with_its_line() {
    let refused = |text: &str| read_lines(text.as_bytes()).unwrap_err().to_string();
    assert!(refused("\n \n").starts_with("is empty"));
    assert!(refused("{\"bench\": 1}").starts_with("line 1: missing field `form`"));
    let text = written(&report());
    let cut = &text[..text.len() - 20];
    assert!(refused(cut).starts_with("line 3: "), "{}", refused(cut));
    let later = text.replacen("\"form\":2", "\"form\":9", 1);
    assert_eq!(
        refused(&later),
        "has form 9 of records, this tenon reads up to 2: use the tenon that wrote it"
    );
}
