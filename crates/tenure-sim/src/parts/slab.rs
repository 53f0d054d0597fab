/// Values with small reusable numbers, which keep events in the agenda small.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// Stores a value and returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = Some(value);
            return number;
        }
        self.values.push(Some(value));
        (self.values.len() - 1) as u32
    }

    /// The value with this number, which must exist.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        self.values[number as usize].as_mut().expect("a number that was given out")
    }

    /// Removes a value; its number is reused.
    pub(crate) fn take(&mut self, number: u32) -> T {
        let value = self.values[number as usize].take().expect("a number that was given out");
        self.free.push(number);
        value
    }
}
