//! What is read of documents, and what is refused.

use super::*;

fn descriptor(kind: &str) -> String {
    format!(r#"{{"mediaType":"{kind}","digest":"{}","size":7}}"#, Digest::of(b"x"))
}

fn manifest_of(layer: &str, count: usize) -> String {
    let layers = vec![descriptor(layer); count].join(",");
    let config = descriptor(OCI_CONFIG);
    format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_MANIFEST}","config":{config},"layers":[{layers}]}}"#)
}

const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

#[test]
fn a_manifest_is_read() {
    let Document::Manifest(found) = read_document(manifest_of(GZIP, 2).as_bytes(), None).unwrap() else {
        panic!("it is a manifest");
    };
    assert_eq!(found.layers.len(), 2);
    assert_eq!(found.layers[0].packing, Packing::Gzip);
    assert_eq!(found.config, Blob { digest: Digest::of(b"x"), size: 7 });
}

#[test]
fn what_is_not_known_is_refused() {
    let unknown = manifest_of("application/vnd.evil", 1);
    assert!(matches!(
        read_document(unknown.as_bytes(), None),
        Err(ImageError::MediaType { what: "a layer", .. })
    ));
    let typed = r#"{"schemaVersion":2,"mediaType":"text/html"}"#;
    assert!(matches!(read_document(typed.as_bytes(), None), Err(ImageError::MediaType { .. })));
    // A body without a type is what the registry says, and that must be known, too.
    assert!(matches!(read_document(b"{}", Some("text/html")), Err(ImageError::MediaType { .. })));
    let many = manifest_of(GZIP, MOST_LAYERS + 1);
    assert!(matches!(read_document(many.as_bytes(), None), Err(ImageError::Refused { .. })));
    let sha512 = manifest_of(GZIP, 1).replace("sha256:", "sha512:");
    assert!(read_document(sha512.as_bytes(), None).is_err());
    assert!(read_document(b"[]", None).is_err());
}

#[test]
fn an_index_gives_the_manifest_for_this_machine() {
    let entry = |arch: &str, of: &[u8]| {
        format!(
            r#"{{"mediaType":"{OCI_MANIFEST}","digest":"{}","size":1,"platform":{{"os":"linux","architecture":"{arch}"}}}}"#,
            Digest::of(of)
        )
    };
    let index = |entries: &[String]| {
        format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":[{}]}}"#, entries.join(","))
    };
    let ours = Arch::default().to_string();
    let found = read_document(index(&[entry("s390x", b"a"), entry(&ours, b"b")]).as_bytes(), None).unwrap();
    assert_eq!(found, Document::Chosen(Blob { digest: Digest::of(b"b"), size: 1 }));
    let missing = read_document(index(&[entry("s390x", b"a")]).as_bytes(), None);
    assert!(matches!(missing, Err(ImageError::Platform { had, .. }) if had == ["linux/s390x"]));
}

#[test]
fn a_configuration_is_for_this_machine_and_these_layers() {
    let text = |arch: &str, extra: &str| {
        format!(
            r#"{{"os":"linux","architecture":"{arch}","config":{{"Env":["A=b"],"Cmd":["sh"]{extra}}},
                "rootfs":{{"type":"layers","diff_ids":["{}"]}}}}"#,
            Digest::of(b"l")
        )
    };
    let ours = Arch::default().to_string();
    let config = read_config(text(&ours, "").as_bytes(), 1).unwrap();
    assert_eq!(config.layers, [Digest::of(b"l")]);
    assert_eq!(config.settings.command, ["sh"]);
    assert!(matches!(read_config(text(&ours, "").as_bytes(), 2), Err(ImageError::Refused { .. })));
    assert!(matches!(read_config(text("s390x", "").as_bytes(), 1), Err(ImageError::Platform { .. })));
    assert!(read_config(text(&ours, r#","User":"a\u0000b""#).as_bytes(), 1).is_err());
}
