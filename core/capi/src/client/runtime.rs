//! Runtimes: plugins, and the devices and ops that they have.

use crate::{
    client::{
        handle::Handle,
        status::Status,
        text::{Buffer, List},
        versioned::{Flag, Options, Versioned},
    },
    fail::Failure,
    process,
    raw::{Array, Text},
    registry::op_list,
};
use std::{ffi::c_int, iter, path::PathBuf};
use tenon_framework::Code;
use tenon_host::search::{Origin, SearchPath};
use tenon_proto::convert::op_def_to_proto;
use tenon_runtime::RuntimeOptions as Settings;

/// A runtime.
pub struct Runtime(pub tenon_runtime::Runtime);

kept! { Runtime => "a runtime" }

/// Options of a runtime. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RuntimeOptions {
    /// sizeof(tn_runtime_options).
    pub size: usize,
    /// Threads for kernels; 0 for one per core.
    pub threads: usize,
    /// Whether to load only the plugins below. Otherwise they are searched for, too: in TENON_PLUGIN_PATH, beside the program,
    /// beside the library, and among the user's plugins.
    pub named_only: Flag,
    /// Files of plugins to load, plugin_count in number.
    pub plugins: Array<'static, Text<'static>>,
    /// Their number.
    pub plugin_count: usize,
    /// The list of plugins that may be loaded, as "tenon trust" writes it; null for the setting host.trust_file.
    pub trust_file: Text<'static>,
    /// Settings of knobs, each "scope.name=value", setting_count in number.
    pub settings: Array<'static, Text<'static>>,
    /// Their number.
    pub setting_count: usize,
    /// The job of this process in a cluster, such as "worker"; null for "localhost".
    pub job: Text<'static>,
    /// The number of the task in the job.
    pub task: usize,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers, numbers and false.
unsafe impl Versioned for RuntimeOptions {
    const NAME: &'static str = "tn_runtime_options";
}

/// The texts of an array, each of which `what` names in errors.
pub fn texts<'a>(
    array: Array<'a, Text<'a>>,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Failure> {
    array.required(count, what)?.iter().map(|text| text.required(what)).collect()
}

fn settings(options: &RuntimeOptions) -> Result<Settings, Failure> {
    let plugins = texts(options.plugins, options.plugin_count, "a plugin to load")?;
    let mut made = Settings {
        threads: (options.threads > 0).then_some(options.threads),
        plugins: plugins.into_iter().map(PathBuf::from).collect(),
        search: options.named_only == 0,
        ..Settings::default()
    };
    for setting in texts(options.settings, options.setting_count, "a setting")? {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::invalid(format!("a setting: expected scope.name=value, found '{setting}'"))
        })?;
        made.settings.options.push((name.to_owned(), value.to_owned()));
    }
    let trust_file = options.trust_file.optional("trust_file")?;
    if !trust_file.is_empty() {
        made.settings.options.push(("host.trust_file".to_owned(), trust_file.to_owned()));
    }
    let job = options.job.optional("job")?;
    let task = u32::try_from(options.task).map_err(|_| {
        Failure::invalid(format!("task: expected the number of a task, found {}", options.task))
    })?;
    made.task = process::task_name(job, task)?;
    Ok(made)
}

/// Starts a runtime. A plugin that was named must load; others that are refused are logged.
fn start(options: &RuntimeOptions) -> Result<Runtime, Failure> {
    let (runtime, report) = tenon_runtime::Runtime::new(settings(options)?)?;
    let named = report.rejected.into_iter().find(|refused| refused.candidate.named);
    if let Some(refused) = named {
        return Err(Failure::new(refused.error.code(), refused.error.to_string()));
    }
    if options.named_only == 0 {
        process::load_beside(&runtime);
    }
    Ok(Runtime(runtime))
}

/// Loads a file, or all plugins of a folder, and gives the names of those that are now in use.
fn load(runtime: &tenon_runtime::Runtime, path: &str) -> Result<Vec<String>, Failure> {
    let place = PathBuf::from(path);
    let report = match place.is_dir() {
        false => runtime.load([place]),
        true => {
            let search =
                SearchPath { places: vec![(Origin::Data, place)], ..SearchPath::default() };
            let report = runtime.plugins().load_search(&search);
            // This opens the devices of what was found.
            let _ = runtime.load(iter::empty::<PathBuf>());
            report
        }
    };
    let loaded = report.into_result();
    let loaded = loaded.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    if loaded.is_empty() {
        return Err(Failure::new(
            Code::NOT_FOUND,
            format!("{path}: the folder has no plugin: expected files named libtenon_NAME.so"),
        ));
    }
    Ok(loaded.into_iter().map(|plugin| plugin.name).collect())
}

api! {
    /// Starts a runtime: loads plugins and opens their devices. "options" may be null. A plugin that the options name and that
    /// cannot be loaded is an error; one that was only found is logged. The caller deletes the runtime.
    fn tn_runtime_new(
        options: Options<'_, RuntimeOptions>,
        status: Option<&mut Status>,
    ) -> Handle<Runtime> [status] {
        start(&options.read()?).map(Handle::new)
    }

    /// Deletes a runtime. What was made with it keeps it until that is deleted, too.
    fn tn_runtime_delete(runtime: Handle<Runtime>) -> c_int { runtime.delete() }

    /// Loads a plugin, or all plugins of a folder, and opens their devices. Returns the names of the plugins, which the caller
    /// deletes. A file that is refused is an error; the others of its folder are loaded.
    fn tn_runtime_load(
        runtime: Handle<Runtime>,
        path: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let path = path.required("the file or folder of plugins")?;
        load(&runtime.get()?.0, path).map(List::of)
    }

    /// The names of the plugins in use, which the caller deletes.
    fn tn_runtime_plugins(
        runtime: Handle<Runtime>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let registry = runtime.get()?.0.registry();
        let plugins = registry.plugins().filter(|plugin| !plugin.retired);
        Ok(List::of(plugins.map(|plugin| plugin.name.as_str())))
    }

    /// The names of all ops, sorted. The caller deletes the list.
    fn tn_runtime_ops(
        runtime: Handle<Runtime>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let registry = runtime.get()?.0.registry();
        let mut names: Vec<&str> = registry.ops().map(|op| op.name.as_str()).collect();
        names.sort_unstable();
        Ok(List::of(names))
    }

    /// The definition of an op as an OpDef message, or those of all ops as an OpList message if "op" is null. The caller deletes
    /// the buffer.
    fn tn_runtime_op_def(
        runtime: Handle<Runtime>,
        op: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        let registry = runtime.get()?.0.registry();
        if op.get().is_none() {
            return Buffer::of_message(&op_list(registry.ops().map(|op| &**op))?);
        }
        let name = op.required("the name of the op")?;
        let found = registry.op(name).ok_or_else(|| Failure::new(
            Code::NOT_FOUND,
            format!("op '{name}' is not registered: load the plugin that has it"),
        ))?;
        Buffer::of_message(&op_def_to_proto(found)?)
    }
}
