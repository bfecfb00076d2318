//! What names, labels, annotations and finalizers may look like: the rules of `k8s.io/apimachinery`, and its words.

/// Why a name is none, where it must be a DNS subdomain. Nothing: it is one.
pub fn wrong_subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    let good = name.split('.').all(is_label);
    (!good).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned()
    })
}

/// Why a name is none, where it must be one DNS label.
pub fn wrong_label(name: &str) -> Option<String> {
    if name.contains('.') {
        return Some("must not contain dots".to_owned());
    }
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_label(name)).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

fn is_label(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = |b: Option<&u8>| b.copied().is_some_and(good);
    let bytes = text.as_bytes();
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| good(*b) || *b == b'-')
}

/// Why this is no key of a label or an annotation, and no name of a finalizer.
pub fn wrong_key(key: &str) -> Option<String> {
    let name = match key.split_once('/') {
        None => key,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                return Some("prefix part must be non-empty".to_owned());
            }
            if let Some(why) = wrong_subdomain(prefix) {
                return Some(format!("prefix part {why}"));
            }
            name
        }
        Some(_) => {
            return Some(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS \
                 subdomain prefix and '/'"
                    .to_owned(),
            );
        }
    };
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 characters".to_owned());
    }
    (!is_word(name)).then(|| {
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            .to_owned()
    })
}

/// Why this is no value of a label.
pub fn wrong_value(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!value.is_empty() && !is_word(value)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            .to_owned()
    })
}

fn is_word(text: &str) -> bool {
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}
