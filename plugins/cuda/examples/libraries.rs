//! What the plugin believes of cuBLASLt and cuDNN, and whether the libraries take it: `libraries [FOLDERS]`.
//!
//! It prints a line for each number, size, offset, symbol and signature that the plugin has by itself. With folders,
//! separated by ':', the libraries that lie there are opened, and have to make and fill every description that kernels
//! give them; that takes no GPU. `.ci/cuda-libraries` compares the lines with NVIDIA's headers.

use std::process::ExitCode;
use tenon_cuda::{cublaslt, cudnn, libraries};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let folders = words.next();
    if words.next().is_some() {
        eprintln!("usage: libraries [FOLDERS]");
        return ExitCode::from(2);
    }
    for line in cublaslt::believed().into_iter().chain(cudnn::believed()) {
        println!("{line}");
    }
    let Some(folders) = folders else { return ExitCode::SUCCESS };
    libraries::look_in(&folders);
    let told = cublaslt::describe().and_then(|products| Ok((products, cudnn::describe()?)));
    match told {
        Ok((products, (others, version))) => {
            println!("described\tcublasLt\t{products}");
            println!("described\tcudnn\t{others}\t{version}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("libraries: {}", error.message);
            ExitCode::FAILURE
        }
    }
}
