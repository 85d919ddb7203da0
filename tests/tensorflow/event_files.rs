//! Event files that graphs write have the events that TensorFlow writes (tests/goldens/events/make.py), and a text gives
//! the pairs of words that it gives TensorFlow (tests/goldens/events/words.py).

use std::{fs, path::PathBuf};
use tenon_framework::{DType, Tensor};
use tenon_proto::{Event, EventKind, SummaryValueKind, decode, decode_graph_def, records};
use tenon_runtime::{RunOptions, Session, SessionOptions};
use tenon_testkit::npz::Npz;
use tenon_tests::session::{runtime, session};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens/events").join(name)
}

/// The events of a file's records.
fn events(mut file: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((head, rest)) = file.split_first_chunk() {
        let length = records::length(head).expect("the length is intact") as usize;
        let (record, rest) = rest.split_at(length);
        let (tail, rest) = rest.split_first_chunk().expect("a checksum follows");
        assert!(records::is_intact(record, tail));
        events.push(decode(record).expect("a record is an event"));
        file = rest;
    }
    assert!(file.is_empty());
    events
}

/// The levels of an image that is a PNG file.
fn pixels(file: &[u8]) -> Vec<u8> {
    let decoder = png::Decoder::new(std::io::Cursor::new(file));
    let mut reader = decoder.read_info().expect("an image is a PNG file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("the image is small")];
    reader.next_frame(&mut pixels).expect("the image is whole");
    pixels
}

/// An event without its time, with pixels in the place of PNG files, as the golden has it.
fn comparable(mut event: Event) -> Event {
    assert!(event.wall_time > 0.0);
    (event.wall_time, event.source_metadata) = (0.0, None);
    if let Some(EventKind::Summary(summary)) = &mut event.what {
        for value in &mut summary.value {
            let Some(SummaryValueKind::Image(image)) = &mut value.value else { continue };
            image.encoded_image_string = pixels(&image.encoded_image_string);
        }
    }
    event
}

#[test]
fn events_are_those_of_tensorflow() {
    let graph = fs::read(golden("graph.pb")).unwrap();
    let options = SessionOptions { isolate_state: true, ..SessionOptions::default() };
    let session = Session::new(&runtime(&["tenon_cpu", "tenon_train"], &[]), options).unwrap();
    session.extend(&decode_graph_def(&graph).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("new/folder");
    let logdir = Tensor::from_strings(&[], &[below.to_str().unwrap()]).unwrap();
    for step in fs::read_to_string(golden("steps.txt")).unwrap().lines() {
        let feeds = [("logdir:0", logdir.clone())];
        let run = session.run(&feeds, &[], &[step], &RunOptions::default());
        run.unwrap_or_else(|error| panic!("{step}: {error}"));
    }
    let files: Vec<PathBuf> =
        fs::read_dir(&below).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("expected a file, found {files:?}") };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("events.out.tfevents.") && name.ends_with(".end"), "{name}");
    let found: Vec<Event> = events(&fs::read(file).unwrap()).into_iter().map(comparable).collect();
    let expected = events(&fs::read(golden("events.bin")).unwrap());
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "event {at}");
    }
}

#[test]
fn knobs_keep_event_files_from_being_written() {
    let knobs = [("train.files", "off")];
    let session = session(&runtime(&["tenon_cpu", "tenon_train"], &knobs), |b| {
        let writer = b.op("SummaryWriter").name("writer").build()?;
        let logdir = b.constant("logdir", Tensor::from_strings(&[], &["folder"]).unwrap())?;
        let most = b.constant("most", Tensor::scalar(1i32).unwrap())?;
        let suffix = b.constant("suffix", Tensor::from_strings(&[], &[""]).unwrap())?;
        let create = b.op("CreateSummaryFileWriter").name("create").input(writer).input(logdir);
        create.input(most).input(most).input(suffix).build().map(drop)
    });
    let error = session.run(&[], &[], &["create"], &RunOptions::default()).unwrap_err();
    assert!(error.to_string().contains("knob train.files is off"), "{error}");
}

#[test]
fn pairs_of_words_are_those_of_tensorflow() {
    let mut golden_words = Npz::open(golden("words.npz")).unwrap();
    let text = golden("words.txt");
    let fetches: Vec<String> = (0..7).map(|at| format!("pairs:{at}")).collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    for (name, subsample) in [("all", 0.0f32), ("some", 0.01)] {
        let session = session(&runtime(&["tenon_cpu", "tenon_train"], &[]), |b| {
            let pairs = b.op("Skipgram").name("pairs").attr("filename", text.to_str().unwrap());
            let pairs = pairs.attr("batch_size", 1500i64).attr("window_size", 4i64);
            pairs.attr("min_count", 3i64).attr("subsample", subsample).build().map(drop)
        });
        for step in 0..3 {
            let (found, _) = session.run(&[], &fetches, &[], &RunOptions::default()).unwrap();
            let words = golden_words.tensor("words", Some(DType::STRING)).unwrap();
            assert_eq!(found[0].as_strings().unwrap(), words.as_strings().unwrap());
            for (at, found) in found.iter().enumerate().skip(1) {
                let key = format!("{name}.{step}.{at}");
                let expected = golden_words.tensor(&key, Some(found.dtype())).unwrap();
                assert_eq!(found.as_bytes().unwrap(), expected.as_bytes().unwrap(), "{key}");
            }
        }
    }
}
