// The error that a promise ends with; a promise that does not fail is an error itself.
export async function refusal(promise) {
  let answer;
  try {
    answer = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a refusal, got ${JSON.stringify(answer)}`);
}
