/// Values with small reusable numbers, so that an event in the queue stays small.
#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value and gives its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        (self.values.len() - 1) as u32
    }

    /// The value of this number, which must be there.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        self.values[number as usize].as_mut().expect("a number that was given out")
    }

    /// Takes a value out; its number will be used again.
    pub(super) fn take(&mut self, number: u32) -> T {
        let value = self.values[number as usize].take().expect("a number that was given out");
        self.free.push(number);
        value
    }
}
