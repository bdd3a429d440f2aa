//! The command line of images: how they come, what there is, and how they go.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use images::Reference;

/// Manage images: root file systems for `run --image`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image pull debian:12
  agentbox image import app.tar
  agentbox run --image debian:12 -- cat /etc/os-release
  agentbox image export debian:12 | podman load")]
pub(crate) struct Images {
    #[command(subcommand)]
    pub(crate) action: ImageAction,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum ImageAction {
    Pull(Pull),
    Import(Import),
    Bootstrap(Bootstrap),
    Ls(ListImages),
    Inspect(InspectImage),
    Tag(Tag),
    Rm(RemoveImages),
    Gc(CollectImages),
    Export(Export),
}

/// Bring an image from a registry.
///
/// Passwords are read from where `docker login` and `podman login` leave them, credential helpers included. What has come
/// before a pull was cut off is kept, and the next one goes on from there. Every byte is compared with the digest that it
/// was asked for by.
///
/// A registry is spoken to by TLS. The certificate of an authority that your system does not know is put where docker
/// looks for it: /etc/docker/certs.d/HOST[:PORT]/ca.crt, or below ~/.config instead of /etc.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image pull debian:12
  agentbox image pull ghcr.io/owner/tool@sha256:1f2e…
  docker login registry.lan && agentbox image pull registry.lan/team/tool
  agentbox image pull --insecure registry.lan:5000/tool")]
pub(crate) struct Pull {
    /// The image: [REGISTRY/]NAME[:TAG][@DIGEST]
    #[arg(value_name = "REF")]
    pub(crate) reference: Reference,
    /// Speak plain HTTP with the registry, where everybody on the way can listen, passwords included
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Print JSON: {"name", "digest"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take an image in from a file, a directory or stdin.
///
/// It may be what `docker save` or `podman save` writes, an OCI archive or layout, or a root file system as a tar (also
/// by gzip or zstd) or a directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  docker save app -o app.tar && agentbox image import app.tar
  agentbox image import rootfs.tar.gz my/base:1
  agentbox image import ./rootfs my/base:2
  docker export box | agentbox image import - my/box:1")]
pub(crate) struct Import {
    /// The file or directory; `-` is stdin
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// What it shall be called, where it does not say so itself
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<Reference>,
    /// Print JSON: [{"name", "digest"}]
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make an image from Debian packages, for machines without a registry.
///
/// It is made by mmdebstrap, from the mirrors that this machine's apt uses.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image bootstrap debian:bookworm
  agentbox image bootstrap debian:bookworm --include git,python3,nodejs --name my/tools")]
pub(crate) struct Bootstrap {
    /// The system: debian:SUITE
    #[arg(value_name = "SYSTEM")]
    pub(crate) system: String,
    /// Further packages, separated by commas
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    pub(crate) include: Vec<String>,
    /// What it shall be called [default: as the system]
    #[arg(long, value_name = "REF")]
    pub(crate) name: Option<Reference>,
    /// Print JSON: {"name", "digest"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// List images.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image ls
  agentbox image ls --json | jq -r '.[].name'

JSON:
  [{\"name\": text or null, \"digest\", \"size\": bytes as they came, \"layers\", \"added_ms\"}]")]
pub(crate) struct ListImages {
    /// Print the digests only
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what an image is: its layers, how it is run, and what was left out when it was unpacked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image inspect debian:12
  agentbox image inspect debian:12 --json | jq .environment

JSON:
  {\"name\", \"digest\", \"platform\", \"created\", \"size\", \"entrypoint\", \"command\",
   \"environment\", \"workdir\", \"user\", \"ports\",
   \"layers\": [{\"digest\", \"size\", \"unpacked\": digest, \"left_out\": {kind: how many}}]}")]
pub(crate) struct InspectImage {
    /// The image: its name, or the beginning of its digest
    #[arg(value_name = "REF")]
    pub(crate) image: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give an image another name besides.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image tag debian:12 my/base:1")]
pub(crate) struct Tag {
    /// The image: its name, or the beginning of its digest
    #[arg(value_name = "REF")]
    pub(crate) image: String,
    /// The other name
    #[arg(value_name = "NEW")]
    pub(crate) name: Reference,
}

/// Remove images. What they alone needed goes with the next `image gc`.
///
/// One that a sandbox uses stays, unless it has another name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image rm debian:12
  agentbox image rm debian:11 my/base:1 && agentbox image gc")]
pub(crate) struct RemoveImages {
    /// The images: names, or beginnings of digests
    #[arg(value_name = "REF", required = true)]
    pub(crate) images: Vec<String>,
}

/// Remove what no image and no sandbox needs any more.
///
/// Nothing is removed while an image is on its way; it waits until that is done.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image gc")]
pub(crate) struct CollectImages {
    /// Print JSON: {"blobs", "bytes", "layers", "kept"}
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write an image as an OCI archive, which docker, podman and skopeo load.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox image export debian:12 -o debian.tar
  agentbox image export my/base:1 | docker load")]
pub(crate) struct Export {
    /// The image: its name, or the beginning of its digest
    #[arg(value_name = "REF")]
    pub(crate) image: String,
    /// The file; stdout without one
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Keep what a running sandbox wrote over its image as a new image.
///
/// The sandbox stands still meanwhile. Its workspace, outputs, /tmp and what is mounted are no part of the image.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agentbox create --name box --image debian:12
  agentbox exec box -- ./install.sh
  agentbox commit box my/tools:1")]
pub(crate) struct Commit {
    /// The sandbox: its id, the beginning of its id, or its name
    #[arg(value_name = "ID")]
    pub(crate) sandbox: String,
    /// What the image shall be called
    #[arg(value_name = "REF")]
    pub(crate) reference: Reference,
    /// Print JSON: {"name", "digest"}
    #[arg(long)]
    pub(crate) json: bool,
}
