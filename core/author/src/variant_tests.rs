use super::*;
use std::sync::Arc;

/// Its clones are counted by the reference count.
#[derive(Clone)]
struct Amount(Arc<i64>);

impl VariantValue for Amount {
    const NAME: &'static str = "test.Amount";

    fn add(&self, other: &Amount) -> Result<Amount, KernelError> {
        Ok(Amount(Arc::new(*self.0 + *other.0)))
    }

    fn zeros_like(&self) -> Result<Amount, KernelError> {
        panic!("no zeros today")
    }
}

/// Another type under the same name.
#[derive(Clone)]
struct Impostor(#[expect(dead_code, reason = "it differs in its layout")] [u64; 4]);

impl VariantValue for Impostor {
    const NAME: &'static str = "test.Amount";
}

#[test]
fn a_value_is_found_by_its_own_type_alone() {
    let amount = Variant::new(Amount(Arc::new(7)));
    assert_eq!(amount.get::<Amount>().map(|amount| *amount.0), Some(7));
    assert!(amount.get::<Impostor>().is_none(), "a name is not a type");
    assert_eq!(amount.get_ref().type_name(), "test.Amount");
    assert_eq!(format!("{amount:?}"), "variant test.Amount");
    assert!(Variant::new(Impostor([1; 4])).get::<Amount>().is_none());
}

#[test]
fn values_are_copied_added_and_dropped_once() {
    let count = Arc::new(20);
    let amount = Variant::new(Amount(Arc::clone(&count)));
    let copy = amount.get_ref().to_owned().unwrap();
    assert_eq!(Arc::strong_count(&count), 3);
    let sum = copy.get_ref().add(&amount.get_ref()).unwrap();
    assert_eq!(*sum.get::<Amount>().unwrap().0, 40);
    drop((amount, copy));
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn what_a_type_cannot_is_an_error_and_so_is_a_panic() {
    let amount = Variant::new(Amount(Arc::new(1)));
    let other = Variant::new(Impostor([0; 4]));
    let error = amount.get_ref().add(&other.get_ref()).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT, "{error}");
    let error = other.get_ref().zeros_like().unwrap_err();
    assert_eq!(error.code, Code::UNIMPLEMENTED, "{error}");
    let error = amount.get_ref().zeros_like().unwrap_err();
    assert_eq!(error.code, Code::INTERNAL, "the panic stays inside: {error}");
    // SAFETY: an element without a value has nothing that must live.
    let none =
        unsafe { VariantRef::new(VariantElement { value: ptr::null_mut(), table: ptr::null() }) };
    assert!(none.is_none() && none.get::<Amount>().is_none() && none.type_name().is_empty());
    assert_eq!(none.to_owned().unwrap_err().code, Code::INVALID_ARGUMENT);
    assert_eq!(amount.get_ref().add(&none).unwrap_err().code, Code::INVALID_ARGUMENT);
}

#[test]
fn a_value_without_tensors_is_copied_to_host_memory_only() {
    let to = |memory| CopyTarget {
        device: ptr::null_mut(),
        memory,
        stream: ptr::null_mut(),
        lent: PhantomData,
    };
    let amount = Amount(Arc::new(3));
    let copy = amount.copy_to_device(&to(MemoryKind::PINNED)).unwrap();
    assert!(Arc::ptr_eq(&copy.0, &amount.0));
    let error = amount.copy_to_device(&to(MemoryKind::DEVICE)).err().unwrap();
    assert_eq!(error.code, Code::UNIMPLEMENTED);
    assert!(error.message.contains("test.Amount"), "{error}");
    // SAFETY: the receiver takes no tensors, and there are none.
    let (mut receiver, nothing) = unsafe {
        (
            TensorSink::new(ptr::null_mut(), TensorGive { run: None }),
            EncodedValue::new(Str::EMPTY, ptr::null(), 0),
        )
    };
    assert_eq!(amount.encode(&mut receiver).unwrap_err().code, Code::UNIMPLEMENTED);
    assert_eq!(Amount::decode(&nothing).err().unwrap().code, Code::UNIMPLEMENTED);
    assert_eq!(nothing.tensor(0).err().unwrap().code, Code::INVALID_ARGUMENT);
}
