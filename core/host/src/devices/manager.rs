//! The devices of a runtime.

use super::{core::DeviceCore, plugin_device::PluginDevice};
use crate::{context::PluginContext, sink::MessageSink};
use std::sync::Arc;
use tenon_abi::Host;
use tenon_framework::{
    device::{DeviceName, base::DeviceBase},
    registry::{DeviceTypeDef, PluginId, Registry, RegistryEvent, RegistryHandle},
    sync::{Mutex, rank},
};

/// A device type without devices, or a device that could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentType {
    /// Name of the type.
    pub device_type: String,
    /// The reason.
    pub reason: String,
}

#[derive(Default)]
struct Open {
    /// In the order of type names and ordinals, with the id of the plugin that registered the type.
    devices: Vec<(PluginId, Arc<PluginDevice>)>,
    absent: Vec<AbsentType>,
}

/// Opens the devices of all registered types, and keeps them open.
pub struct DeviceManager {
    /// The table that device plugins receive.
    host: &'static Host,
    /// The task whose devices they are.
    task: DeviceName,
    registry: Arc<RegistryHandle>,
    open: Mutex<Open>,
}

impl DeviceManager {
    /// Opens every device of every type in the current snapshot. `host` is the table that their
    /// plugins receive, [`HOST`](crate::HOST) outside of tests; `task` is the part of their names
    /// that names this process ([`DeviceName::of_task`]); `plugin` returns a plugin's context
    /// with the values of its knobs. A type without devices, or a device that cannot be opened,
    /// does not affect others: see [`DeviceManager::absent`].
    pub fn new(
        host: &'static Host,
        task: DeviceName,
        registry: Arc<RegistryHandle>,
        plugin: impl Fn(PluginId) -> Arc<PluginContext>,
    ) -> DeviceManager {
        let open = Mutex::ranked(rank::REGISTRY, Open::default());
        let manager = DeviceManager { host, task, registry, open };
        manager.refresh(plugin);
        manager
    }

    /// Opens the devices of types that are new in the current snapshot, and releases those whose
    /// plugin is retired. Notifies subscribers.
    pub fn refresh(&self, plugin: impl Fn(PluginId) -> Arc<PluginContext>) {
        let snapshot = self.registry.load();
        let (added, retired) = self.update(&snapshot, &plugin);
        // Outside the lock: subscribers may call this manager. Every remaining user of a device
        // keeps it open.
        for device in &retired {
            self.registry.publish(&RegistryEvent::DeviceRetired(device.name().clone()));
        }
        for device in &added {
            self.registry.publish(&RegistryEvent::DeviceAdded(device.name().clone()));
        }
    }

    fn update(
        &self,
        snapshot: &Registry,
        plugin: &impl Fn(PluginId) -> Arc<PluginContext>,
    ) -> (Vec<Arc<PluginDevice>>, Vec<Arc<PluginDevice>>) {
        let mut open = self.open.lock();
        let stays = |id: PluginId, device: &PluginDevice| {
            snapshot.device_type(device.device_type()).is_some_and(|def| def.plugin == id)
        };
        let (kept, gone): (Vec<_>, Vec<_>) =
            open.devices.drain(..).partition(|(id, device)| stays(*id, device));
        open.devices = kept;
        open.absent.clear();
        let mut added = Vec::new();
        for def in snapshot.device_types() {
            if open.devices.iter().any(|(_, device)| device.device_type() == def.name) {
                continue;
            }
            let devices = self.open_type(def, &plugin(def.plugin), &mut open.absent);
            added.extend(devices.iter().cloned());
            open.devices.extend(devices.into_iter().map(|device| (def.plugin, device)));
        }
        open.devices.sort_by(|(_, a), (_, b)| a.name().cmp(b.name()));
        (added, gone.into_iter().map(|(_, device)| device).collect())
    }

    /// Opens the devices of one of this plugin's types.
    fn open_type(
        &self,
        def: &DeviceTypeDef,
        plugin: &Arc<PluginContext>,
        absent: &mut Vec<AbsentType>,
    ) -> Vec<Arc<PluginDevice>> {
        let sink = MessageSink::new();
        // SAFETY: the type's own entry with valid arguments.
        let count = unsafe { (def.probe)(self.host, plugin.as_raw(), sink.as_sink()) };
        let mut miss = |reason: String| {
            tracing::info!(device_type = def.name, "{reason}");
            absent.push(AbsentType { device_type: def.name.clone(), reason });
        };
        if count == 0 {
            miss(
                sink.take().unwrap_or_else(|| "there is none, and no reason was given".to_owned()),
            );
        }
        let mut devices = Vec::new();
        for ordinal in 0..count {
            match DeviceCore::open(self.host, &self.task, def, ordinal, plugin, &self.registry) {
                Ok(core) => devices.push(PluginDevice::new(core)),
                Err(error) => miss(error.message),
            }
        }
        devices
    }

    /// All open devices, in the order of type names and ordinals.
    pub fn devices(&self) -> Vec<Arc<PluginDevice>> {
        self.open.lock().devices.iter().map(|(_, device)| Arc::clone(device)).collect()
    }

    /// Types without devices and devices that could not be opened, with the reasons.
    pub fn absent(&self) -> Vec<AbsentType> {
        self.open.lock().absent.clone()
    }

    /// The first device that matches a full or partial name.
    pub fn find(&self, name: &DeviceName) -> Option<Arc<PluginDevice>> {
        let open = self.open.lock();
        let mut devices = open.devices.iter().map(|(_, device)| device);
        devices.find(|device| name.matches(device.name())).cloned()
    }
}
