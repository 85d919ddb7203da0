//! `tenon saved-model`: models that TensorFlow or Keras saved.

mod args;
mod show;

pub use args::{ABOUT, EXAMPLE, SavedModelArgs};

use crate::{args::Global, error::CliError, run};
use args::SavedModelCommand;

/// Shows or runs a model.
///
/// # Errors
/// A file cannot be read or is damaged; as `tenon run`.
pub fn saved_model(global: &Global, args: &SavedModelArgs) -> Result<(), CliError> {
    match &args.command {
        SavedModelCommand::Show(args) => show::show(global, args),
        SavedModelCommand::Run(args) if args.graph.is_dir() => run::run(global, args),
        SavedModelCommand::Run(args) => {
            let (option, file) = ("saved-model run", args.graph.clone());
            Err(CliError::OptionOf { option, file, expected: "the folder of a SavedModel" })
        }
    }
}
