//! What tests start to run isolated plugins: the process of a test is a test, and no worker.

fn main() {
    tenon_runtime::isolate::work();
    eprintln!("isolate-worker: started by hand; it runs plugins for a host that starts it");
    std::process::exit(2);
}
