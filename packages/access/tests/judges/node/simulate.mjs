// Decides cases of access: a case on each line of the standard input, a decision on each line of the output.

import { createInterface } from 'node:readline'

import { runSimulation } from '@cloud-copilot/iam-simulate'

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line)
  const simulated = await runSimulation(
    {
      request: {
        principal: asked.principal,
        action: asked.action,
        resource: { resource: asked.resource, accountId: asked.account },
        contextVariables: asked.keys,
      },
      identityPolicies: asked.identity.map((policy, place) => ({ name: `identity ${place + 1}`, policy })),
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: asked.resource_policy ?? undefined,
      permissionBoundaryPolicies: asked.boundary ? [{ name: 'boundary', policy: asked.boundary }] : undefined,
      sessionPolicy: asked.session ?? undefined,
    },
    {},
  )
  console.log(
    JSON.stringify({
      decision: simulated.resultType === 'error' ? 'error' : simulated.overallResult,
      errors: simulated.errors,
      ignored: simulated.result?.ignoredContextKeys ?? [],
    }),
  )
}
