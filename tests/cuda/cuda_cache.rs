//! The folder of compiled CUDA kernels: spoilt, out of reach, and used by two processes at once. On the fake CUDA
//! stack.

use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tenon_runtime::framework::{DType, PartialShape};
use tenon_tests::{
    cuda::{folder, runtime_on, variables},
    process::{finish, start},
    session::{floats, run, session, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
/// Tells a process of its own where kernels are kept.
const KEPT: &str = "TENON_TESTS_KEPT";
/// The test that such a process runs.
const ONE_OF_TWO: &str = "cuda_cache::one_of_two";

/// Computes on a new runtime whose kernels are kept there: `-(relu(x)^2)`, three kernels.
fn compute(kept: &Path) {
    let knobs = [("runtime.record_after", "-1"), ("graph.elementwise_fusion", "false")];
    let runtime = runtime_on(&folder(), kept, &knobs);
    let session = session(&runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let y = b.op("Relu").input(x).device(CUDA).build()?;
        let y = b.op("Square").input(y).device(CUDA).build()?;
        b.op("Neg").name("y").input(y).device(CUDA).build().map(|_| ())
    });
    let x: Vec<f32> = (0..1000).map(|at| at as f32 / 4.0 - 100.0).collect();
    let y = run(&session, &[("x", floats(&x))], &["y"]).expect("the step runs").remove(0);
    let expected: Vec<f32> = x.iter().map(|x| -(x.max(0.0) * x.max(0.0))).collect();
    assert_eq!(values(&y), expected);
}

/// The files that are kept, by name.
fn kept(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).expect("there is such a folder").flatten();
    files.map(|it| (it.path(), fs::read(it.path()).expect("it can be read"))).collect()
}

/// A file of this name that is as whole as the plugin's own, and holds these bytes: it begins with the digest of name
/// and bytes, the name with its length in front.
fn whole(file: &Path, contents: &[u8]) -> Vec<u8> {
    let name = file.file_name().expect("it has a name").as_encoded_bytes();
    let mut digest = Sha256::new();
    digest.update((name.len() as u64).to_le_bytes());
    digest.update(name);
    digest.update(contents);
    [digest.finalize().as_slice(), contents].concat()
}

#[test]
fn spoilt_kernels_are_compiled_anew_and_kept_again() {
    let _turn = turn();
    let folder = TempDir::new().expect("a folder");
    compute(folder.path());
    let good = kept(folder.path());
    assert_eq!(good.len(), 3, "a file for each kernel");
    type Spoil = fn(&Path, &[u8]) -> Vec<u8>;
    let spoils: [(&str, Spoil); 6] = [
        ("empty", |_, _| Vec::new()),
        ("cut within the digest", |_, good| good[..20].to_vec()),
        ("cut behind the digest", |_, good| good[..32].to_vec()),
        ("cut in the middle", |_, good| good[..good.len() / 2].to_vec()),
        ("garbage", |_, good| (0..good.len()).map(|at| (at * 31 % 251) as u8).collect()),
        ("whole, and no kernel", |file, _| whole(file, b"not a kernel")),
    ];
    for (how, spoil) in spoils {
        for (file, bytes) in &good {
            assert_eq!(*bytes, whole(file, &bytes[32..]), "this test knows what is whole");
            fs::write(file, spoil(file, bytes)).expect("it can be written");
        }
        compute(folder.path());
        assert!(kept(folder.path()) == good, "{how}: the folder is not as it was");
    }
    // What another process left when it was stopped is in nobody's way.
    let (file, bytes) = good.first_key_value().expect("there are some");
    fs::write(file.with_extension("1-0.part"), &bytes[..40]).expect("it can be written");
    fs::remove_file(file).expect("it is there");
    compute(folder.path());
    assert_eq!(fs::read(file).expect("it is there again"), *bytes);
}

#[test]
fn a_kernel_that_is_kept_under_the_name_of_another_is_not_taken_for_it() {
    let _turn = turn();
    let folder = TempDir::new().expect("a folder");
    compute(folder.path());
    let good = kept(folder.path());
    // Each lies under the name of the next one: all of them can be loaded, and none is what is asked for.
    let contents = good.values().cycle().skip(1);
    for (file, other) in good.keys().zip(contents) {
        fs::write(file, other).expect("it can be written");
    }
    compute(folder.path());
    assert!(kept(folder.path()) == good, "the folder is not as it was");
}

#[test]
fn without_a_folder_that_can_be_written_kernels_are_compiled_each_time() {
    let _turn = turn();
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "no folder").expect("it can be written");
    // Below a file there is no folder, and in /proc nobody makes one, not even root.
    for nowhere in [file.as_path(), &file.join("kernels"), Path::new("/proc/kernels")] {
        compute(nowhere);
        compute(nowhere);
    }
    assert_eq!(fs::read(&file).expect("it is there"), b"no folder");
}

#[test]
fn a_folder_in_the_place_of_a_kernel_is_left_alone() {
    let _turn = turn();
    let folder = TempDir::new().expect("a folder");
    compute(folder.path());
    let names: Vec<PathBuf> = kept(folder.path()).into_keys().collect();
    for name in &names {
        fs::remove_file(name).expect("it is there");
        fs::create_dir(name).expect("nothing is in its place");
    }
    compute(folder.path());
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, names.len(), "nothing half written stays");
}

/// What two processes do at once.
#[test]
#[ignore = "started by the others"]
fn one_of_two() {
    compute(Path::new(&env::var_os(KEPT).expect("this test is started by the others")));
}

#[test]
fn two_processes_share_a_gpu_and_the_folder_of_kernels() {
    let folders = TempDir::new().expect("a folder");
    let at = |name: &str| folders.path().join(name);
    let compiler = |cold: &str| {
        let own = [(KEPT, at("kept")), ("FAKE_CUDA_CACHE", at(cold))];
        variables().into_iter().chain(own).collect::<Vec<_>>()
    };
    // Both begin with nothing compiled.
    let children = ["first", "second"].map(|cold| start(ONE_OF_TWO, &compiler(cold)));
    children.into_iter().for_each(|child| finish(ONE_OF_TWO, child));
    let shared = kept(&at("kept"));
    assert_eq!(shared.len(), 3, "three kernels, and nothing half written: {:?}", shared.keys());
    // Whoever comes now finds all of them: there is nothing that compiles.
    let mut without_compiler = compiler("third");
    without_compiler.push(("FAKE_CUDA_CXX", PathBuf::from("/bin/false")));
    finish(ONE_OF_TWO, start(ONE_OF_TWO, &without_compiler));
    assert!(kept(&at("kept")) == shared, "and leaves them as they are");
}
