//! What is shown of images.

use std::process::ExitCode;

use engine::Engine;
use images::{Collected, Image, Store, Unpacked};
use serde_json::{Value, json};

use crate::arguments::{InspectImage, ListImages};
use crate::failure::{Failure, escape};
use crate::output::{ago, json_line, print};
use crate::processes::size;
use crate::record::Form;

pub(super) fn list(engine: &Engine, list: &ListImages) -> Result<ExitCode, Failure> {
    let store = engine.images()?;
    let images: Vec<_> =
        store.list()?.into_iter().map(|listed| (listed.clone(), store.image(listed))).collect();
    if list.json {
        let lines = images.iter().map(|(listed, image)| {
            json!({
                "name": listed.reference.as_ref().map(|name| name.familiar()),
                "digest": listed.manifest.digest.to_string(),
                "size": image.as_ref().map(Image::size).ok(),
                "layers": image.as_ref().map(|image| image.config.layers.len()).ok(),
                "added_ms": listed.added * 1000,
            })
        });
        return print(&json_line(&Value::from(lines.collect::<Vec<_>>())));
    }
    if list.quiet {
        return print(
            &images.iter().map(|(listed, _)| format!("{}\n", listed.manifest.digest)).collect::<String>(),
        );
    }
    let mut text = format!("{:<40}{:<14}{:<10}{}\n", "NAME", "DIGEST", "SIZE", "ADDED");
    for (listed, image) in &images {
        let name = listed.reference.as_ref().map_or_else(|| "-".to_owned(), |name| name.familiar());
        let shown = match image {
            Ok(image) => size(image.size()),
            Err(_) => "damaged".to_owned(),
        };
        let digest = listed.manifest.digest.short();
        text.push_str(&format!("{name:<39} {digest:<14}{shown:<10}{}\n", ago(listed.added * 1000)));
    }
    print(&text)
}

pub(super) fn inspect(engine: &Engine, inspect: &InspectImage) -> Result<ExitCode, Failure> {
    let store = engine.images()?;
    let image = store.find(&inspect.image)?;
    let layers: Vec<Value> = image
        .manifest
        .layers
        .iter()
        .zip(&image.config.layers)
        .map(|(blob, layer)| {
            json!({
                "digest": blob.blob.digest.to_string(),
                "size": blob.blob.size,
                "unpacked": layer.to_string(),
                "left_out": store.unpacked(layer).map(|unpacked| left_out(&unpacked)),
            })
        })
        .collect();
    let settings = &image.config.settings;
    let value = json!({
        "name": image.listed.reference.as_ref().map(ToString::to_string),
        "digest": image.listed.manifest.digest.to_string(),
        "platform": image.config.platform,
        "created": image.config.created,
        "size": image.size(),
        "entrypoint": settings.entrypoint,
        "command": settings.command,
        "environment": settings.environment,
        "workdir": settings.workdir,
        "user": settings.user,
        "ports": settings.ports,
        "layers": layers,
    });
    if inspect.json {
        return print(&json_line(&value));
    }
    let mut text = format!("{:<13}{}\n", "name:", escape(&image.listed.name()));
    // What it is, how it is run, and what it is made of.
    let order =
        ["digest", "platform", "created", "size", "entrypoint", "command", "environment", "workdir", "user"];
    for name in order.into_iter().chain(["ports"]) {
        let shown = match &value[name] {
            Value::Null => continue,
            Value::String(value) => value.clone(),
            Value::Array(list) if list.is_empty() => continue,
            Value::Number(bytes) => size(bytes.as_u64().unwrap_or(0)),
            other => other.to_string(),
        };
        text.push_str(&format!("{:<13}{}\n", format!("{name}:"), escape(&shown)));
    }
    for (number, (blob, layer)) in image.manifest.layers.iter().zip(&image.config.layers).enumerate() {
        let name = if number == 0 { "layers:" } else { "" };
        text.push_str(&format!("{name:<13}{layer} {}\n", size(blob.blob.size)));
    }
    print(&text)
}

fn left_out(unpacked: &Unpacked) -> Value {
    let Unpacked { devices, capabilities, attributes, owners, .. } = unpacked;
    json!({"devices": devices, "capabilities": capabilities, "attributes": attributes, "owners": owners})
}

/// Says what of new images is not as they have it.
pub(super) fn say_left_out(store: &Store, images: &[Image]) {
    let mut sum = Unpacked::default();
    for layer in images.iter().flat_map(|image| &image.config.layers) {
        let Some(unpacked) = store.unpacked(layer) else { continue };
        sum.devices += unpacked.devices;
        sum.capabilities += unpacked.capabilities;
        sum.attributes += unpacked.attributes;
        sum.owners += unpacked.owners;
    }
    let Unpacked { devices, capabilities, attributes, owners, .. } = sum;
    for (count, what) in [
        (devices, "devices and pipes were left out"),
        (capabilities, "files lost capabilities, which count for nothing inside"),
        (attributes, "attributes were left out"),
        (owners, "files have owners above 65534 and belong to nobody"),
    ] {
        if count > 0 {
            eprintln!("note: {count} {what}");
        }
    }
}

pub(super) fn collected(collected: Collected, form: Form) -> Result<ExitCode, Failure> {
    let Collected { blobs, bytes, layers, kept } = collected;
    if form == Form::Program {
        return print(&format!(
            "{}\n",
            json!({"blobs": blobs, "bytes": bytes, "layers": layers, "kept": kept})
        ));
    }
    let mut text = format!("removed {blobs} blobs ({}) and {layers} layers\n", size(bytes));
    if kept > 0 {
        text.push_str(&format!("kept {kept} layers that sandboxes use\n"));
    }
    print(&text)
}
