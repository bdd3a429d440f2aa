//! Images for sandboxes: the caller's store, what an image says of how it is run, and which layers are in use.

mod commit;
mod user;
mod worker;

use images::{Bringing, HeldLayers, ImageError, Listed, Progress, Settings, Store, Used};
use jail::Layers;
use policy::{ImageRoot, Root};

use crate::error::EngineError;
use crate::start::Engine;

pub use user::ImageUser;
pub use worker::{IMAGE_WORKER, Worker, image_worker};

/// An image that a sandbox is about to be made from. While it is held its layers stay.
#[derive(Debug)]
pub struct ReadyImage {
    /// Its root file system.
    pub root: ImageRoot,
    /// How it says that it is run.
    pub settings: Settings,
    /// Whom it runs as.
    pub user: ImageUser,
    /// Its layers, which are not removed meanwhile.
    pub held: HeldLayers,
}

impl Engine {
    /// The caller's images.
    pub fn images(&self) -> Result<Store, EngineError> {
        self.directories.make_state()?;
        Ok(Store::open(&self.directories.images())?)
    }

    /// Gets an image ready for a sandbox; what is not unpacked is unpacked first.
    pub fn ready_image(&self, name: &str, progress: &Progress<'_>) -> Result<ReadyImage, EngineError> {
        let store = self.images()?;
        let image = store.find(name)?;
        let held = store.hold(&image, &Worker::new()?, progress)?;
        let settings = image.config.settings.clone();
        let user = ImageUser::of(settings.user.as_deref(), &Layers::new(&held.directories))?;
        let root = ImageRoot {
            name: image.listed.name(),
            digest: image.listed.manifest.digest.to_string(),
            layers: held.directories.clone(),
        };
        Ok(ReadyImage { root, settings, user, held })
    }

    /// The directories of layers that sandboxes use, and which of them use an image.
    fn used_layers(&self) -> (Used, Vec<(String, String)>) {
        let (mut layers, mut by) = (Used::new(), Vec::new());
        for id in self.ids() {
            // One that cannot be understood could use anything; it has to be removed before it can be started again.
            let Ok(spec) = self.spec(&id) else { continue };
            if let Root::Image(image) = spec.root {
                by.push((image.digest, id.to_string()));
                layers.extend(image.layers);
            }
        }
        (layers, by)
    }

    /// Takes an image off the list. One that a sandbox uses stays, unless it has another name.
    pub fn remove_image(&self, image: &Listed) -> Result<(), EngineError> {
        let store = self.images()?;
        let digest = image.manifest.digest.to_string();
        let names =
            store.list()?.into_iter().filter(|listed| listed.manifest.digest.to_string() == digest).count();
        let (_, used) = self.used_layers();
        let by: Vec<String> = used.into_iter().filter(|(of, _)| *of == digest).map(|(_, id)| id).collect();
        if names < 2 && !by.is_empty() {
            return Err(ImageError::InUse { image: image.name(), by }.into());
        }
        Ok(store.unlist(image)?)
    }

    /// Collects what no image and no sandbox needs.
    pub fn collect_images(&self) -> Result<images::Collected, EngineError> {
        let (used, _) = self.used_layers();
        Ok(self.images()?.collect(&used, &Worker::new()?)?)
    }

    /// Says that an image is on its way.
    pub fn bringing_image(&self) -> Result<Bringing, EngineError> {
        Ok(self.images()?.bringing()?)
    }
}
