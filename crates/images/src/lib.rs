//! Images: root file systems by content. References, a store of blobs and unpacked layers, and the ways in and out of
//! it: registries, archives and directories.
//!
//! It stands on the owner's side, and everything that it reads is a stranger's: names become types, sizes and numbers
//! are bounded, bytes are hashed before they are believed, and layers are unpacked beneath one directory without
//! following anything. It starts no sandbox and mounts nothing.

mod beside;
mod bootstrap;
mod commit;
mod decode;
mod digest;
mod document;
mod error;
mod export;
mod hands;
mod import;
mod pack;
mod pieces;
mod progress;
mod pull;
mod reference;
mod said;
mod store;
mod unpack;
mod weaken;
mod written;

pub use bootstrap::Bootstrap;
pub use digest::{Digest, DigestError};
pub use document::{
    Blob, Config, Document, LayerBlob, Manifest, Packing, Settings, platform, read_config, read_document,
};
pub use error::ImageError;
pub use hands::{Hands, Own};
pub use import::{Import, Source};
pub use pack::{Over, Whose, pack};
pub use progress::{Progress, Step};
#[cfg(feature = "fuzz")]
pub use pull::fuzz;
pub use pull::{Pull, Transport, certificate_directories, credential_files};
pub use reference::{Reference, ReferenceError};
pub use said::Said;
pub use store::{Bringing, Collected, HeldLayers, Image, Listed, Store, Used};
pub use unpack::{LIMITS, LayerError, Owners, Unpacked, unpack};
pub use weaken::Guard;
